# SPDX-License-Identifier: MIT
"""libfabric's ping-pong over its verbs providers: rdma_cm and verbs as another library uses them. It looks for the
largest inline size by asking for larger ones, and for addresses by binding to each, also to one that an interface still
looks for doubles of. Between hosts the device must not have 127.0.0.1: the server would name that to the client."""
from pairs import Pair

COMPLAINTS = (r"^nicless: (ibv_create_qp: EINVAL, cap.max_inline_data is \d+, the device's limit is 1024"
              r"|rdma_bind_addr: EADDRNOTAVAIL, \[fe80)")
WORLDS = {"loopback": (), "netns": (("NICLESS_DEVICES", "nicless0=veth0"),)}
ENDPOINTS = (("msg", "verbs", "1m"), ("rdm", "verbs;ofi_rxm", "1m"), ("dgram", "verbs", "1k"))  # and the last row


# On one core an end is often interrupted between its last look at its completions and its look at what the connection
# manager has to tell: then the last send must not end as flushed.
def placements(world, kind):
    yield "", ""
    if world == "loopback" and kind == "rdm":
        yield ", on one core", "taskset -c 0 "


def table():
    for world, env in WORLDS.items():
        for kind, provider, largest in ENDPOINTS:
            command = f"fi_pingpong -p {provider} -e {kind} -I 20"
            rows = (r"^64 +20 +=20 ", rf"^{largest} +20 +=20 ")
            for name, placed in placements(world, kind):
                yield Pair(f"fi_pingpong -p {provider} -e {kind}{name}", f"{placed}{command} -B {{port}}",
                           f"{placed}{command} -P {{port}} {{server}}", "tcp", rows, rows, env=env, only_on=world,
                           bound=60, needs="fi_pingpong", complaints=COMPLAINTS)

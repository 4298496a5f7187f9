# SPDX-License-Identifier: MIT
"""qperf: one server, which takes one client after the other and runs any number of tests for each.

-cm1 makes it connect by rdma_cm. Only its tests of reliable connections do; the others exchange LIDs, which are addresses of
InfiniBand and lead nowhere over RoCE, on hardware as here; but nicless run --lids gives ports some.
"""
import re

from harness import FAILS, Failure
from pairs import expect_no_complaint

RELIABLE = {  # and the figure that is printed
    "rc_bw": "bw", "rc_bi_bw": "bw", "rc_lat": "latency", "rc_rdma_read_bw": "bw", "rc_rdma_read_lat": "latency",
    "rc_rdma_write_bw": "bw", "rc_rdma_write_lat": "latency", "rc_rdma_write_poll_lat": "latency",
    "rc_compare_swap_mr": "msg_rate", "rc_fetch_add_mr": "msg_rate", "ver_rc_compare_swap": "msg_rate",
    "ver_rc_fetch_add": "msg_rate",
}
UNRELIABLE = {
    "uc_bw": "send_bw", "uc_bi_bw": "send_bw", "uc_lat": "latency", "uc_rdma_write_bw": "send_bw",
    "uc_rdma_write_lat": "latency", "uc_rdma_write_poll_lat": "latency", "ud_bw": "send_bw", "ud_bi_bw": "send_bw",
    "ud_lat": "latency",
}
# What the receiver has no receive for is dropped, and said.
DROPPED = r"^nicless: qp 0x[0-9a-f]+ dropped a "
# It ends a test by a signal, and destroys what it has made in an order that verbs refuses, as they do over hardware.
EXCEPTED = r"^nicless: ibv_(dealloc_pd|destroy_cq|destroy_comp_channel): EBUSY"


def start_server(world, launcher=()):
    port = world.free_port()
    server = world.start("server", ["qperf", "-lp", port], pcap=False, options=launcher)
    server.wait_port("tcp", port, world.bound(10))
    return server, port


def run_client(world, port, role, options, tests, launcher=()):
    return world.run(role, ["qperf", "-lp", port, *options, world.address, *tests], host="b", pcap=False,
                     bound=20 + 5 * len(tests), options=launcher)


def check_figures(text, figures):
    """Each test has its line with a number above nothing."""
    printed = re.sub(r"^(nicless|warning): .*\n", "", text, flags=re.MULTILINE)
    blocks = dict(re.findall(r"^(\w+):\n((?:^ .*\n?)+)", printed, re.MULTILINE))
    for test, figure in figures.items():
        if not re.search(rf"^ +{figure} += +(?!0 )[0-9.,]+ ", blocks.get(test, ""), re.MULTILINE):
            raise Failure(f"no {figure} of {test} that can be")


def check_clean(world, server):
    server.expect_running()
    for process in world.processes:
        expect_no_complaint(process, f"{EXCEPTED}|{DROPPED}")


def all_reliable(world):
    """All of them, for one client."""
    server, port = start_server(world)
    check_figures(run_client(world, port, "client", ["-cm1", "-t", 1], list(RELIABLE)), RELIABLE)
    check_clean(world, server)


def sizes_and_polling(world):
    """One client after the other: sizes, polling instead of events, data looked at by the receiver."""
    server, port = start_server(world)
    for number, options in enumerate((["-m", 1], ["-m", 65536, "-cp1"], ["-m", 1000, "-ar1", "-rcp1"])):
        client = run_client(world, port, f"client{number}", ["-cm1", "-t", 1, *options], ["rc_lat", "rc_bw"])
        check_figures(client, {"rc_lat": "latency", "rc_bw": "bw"})
    check_clean(world, server)


def what_arrives(world):
    """-vvs counts: of a ping-pong, the last message or its answer may be under way when the time is over."""
    server, port = start_server(world)
    text = run_client(world, port, "client", ["-cm1", "-t", 1, "-m", 64, "-vvs", "-un", "-uu"], ["rc_lat"])
    count = {name: int(number) for name, number in re.findall(r"^ +(\w+_msgs) += +([0-9]+)", text, re.MULTILINE)}
    sent, received = count.get("loc_send_msgs", 0), count.get("rem_recv_msgs", 0)
    answered, heard = count.get("rem_send_msgs", 0), count.get("loc_recv_msgs", 0)
    if not (0 < received <= sent <= received + 1 and 0 < heard <= answered <= heard + 1):
        raise Failure(f"these counts do not go together: {count}")
    check_clean(world, server)


def unreliable(world):
    """Connections and datagrams that nobody acknowledges, by LID; of a size that fits each port's MTU."""
    with_lids = ("--lids",)
    server, port = start_server(world, with_lids)
    options = ["-t", 1, "-mt", 1024, "-m", 1000]
    check_figures(run_client(world, port, "client", options, list(UNRELIABLE), with_lids), UNRELIABLE)
    check_clean(world, server)


def lids(world):
    """Without -cm1 the address of the peer is a LID, and there are none: refused in words, and the server serves the next."""
    server, port = start_server(world)
    world.run("client", ["qperf", "-lp", port, world.address, "ud_lat"], host="b", pcap=False, status=FAILS)
    said = r"^nicless: ibv_create_ah: EINVAL, .*RoCE addresses are GIDs"
    if not any(re.search(said, process.text, re.MULTILINE) for process in world.processes):
        raise Failure("nobody said what is wrong with a LID")
    check_figures(run_client(world, port, "second", ["-cm1", "-t", 1], ["rc_lat"]), {"rc_lat": "latency"})


def table(world):
    del world
    return [("qperf: all tests of reliable connections", all_reliable),
            ("qperf: all tests of unreliable connections and datagrams", unreliable),
            ("qperf: sizes and polling", sizes_and_polling),
            ("qperf: what is sent is received", what_arrives),
            ("qperf: LIDs are refused where there are none", lids)]

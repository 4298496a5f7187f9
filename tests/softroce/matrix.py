# SPDX-License-Identifier: MIT
"""What is run between nicless and the kernel. {device}, {gid} and {own} are each end's own, {server} is the server's address."""
import dataclasses

import exchange as exchanges

NEAR = {"device": "", "gid": "-g 0", "gid6": "-g 1", "index": "-x 0"}
FAR = {"device": "-d rxe0", "gid": "-g 1", "gid6": "-g 2", "index": "-d rxe0 -x 1"}

# A bad network: what nicless does to its datagrams, and the guest's queueing discipline to the kernel's.
BAD_NEAR = ("--loss", "2%", "--duplicate", "2%", "--reorder", "3%", "--corrupt", "1%", "--seed", "7")
BAD_FAR = "loss 2% duplicate 2% corrupt 1% delay 2ms 1ms"
# One that loses nothing, for programs that part without a word: the last acknowledgement of all is never sent again.
TROUBLED_NEAR = ("--duplicate", "20%", "--reorder", "20%", "--seed", "7")
TROUBLED_FAR = "duplicate 20% delay 2ms 1ms"

# In the guest: ends what a case has left behind.
KILL = "killall -q -KILL exchange rping ucmatose udaddy mckey cmtime rdma_server rdma_client $(cd /usr/bin; ls -d ib_* ibv_*); true"


def queueing(what):
    """A command of the guest, on its network device. (The shell has a small tc of its own.)"""
    return f"/sbin/tc qdisc {what.format(device='dev $(ls /sys/class/net | grep -v lo | head -n 1) root')}"


def until_ready(kind, port):
    """A command of the guest that ends when the server there listens."""
    look = {"tcp": f"ss -Hltn 'sport = :{port}' | grep -q .", "cm": "rdma resource show cm_id | grep -q LISTEN",
            "ud": "rdma resource show qp | grep -q 'type UD'"}[kind]
    return f"for i in $(seq 100); do {look} && exit 0; sleep 0.1; done; exit 1"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    server: str
    client: str
    ready: str  # "tcp": the server listens on {port}; "cm": it listens at the connection manager; "ud": it has a UD queue pair
    prints: tuple = ()  # at both ends
    bound: int = 90
    is_short: bool = False
    killed: str = ""  # the end that kills itself
    faults: tuple = ()  # of the near end: options of nicless run
    netem: str = ""  # of the guest


def rdmacm():
    yield Case("rping", "rping -s -C 5 -V -p {port}", "rping -c -a {server} -C 5 -V -p {port}", "cm", is_short=True)
    for size in (3000, 60000):
        more = f"-C 5 -V -S {size} -p {{port}}"
        yield Case(f"rping -S {size}", f"rping -s {more}", f"rping -c -a {{server}} {more}", "cm")
    yield Case("rping over IPv6", "rping -s -a :: -C 5 -V -p {port}", "rping -c -a {server6} -C 5 -V -p {port}", "cm")
    ended = (r"^return status 0",)
    for more in ("-c 4", "-C 20 -S 5000", "-t 32"):
        yield Case(f"ucmatose {more}", f"ucmatose {more} -p {{port}}", f"ucmatose -s {{server}} {more} -p {{port}}", "cm", ended)
    yield Case("ucmatose over IPv6", "ucmatose -b {own6} -p {port}", "ucmatose -s {server6} -p {port}", "cm", ended)
    yield Case("rdma_server and rdma_client", "rdma_server -p {port}", "rdma_client -s {server} -p {port}", "cm",
               (r"^rdma_(server|client): end 0",))
    for more in ("", "-c 3 -C 8 -S 900"):
        yield Case(f"udaddy {more}".strip(), f"udaddy -b {{own}} {more}", f"udaddy -s {{server}} {more}", "cm", ended)
    yield Case("udaddy over IPv6", "udaddy -b {own6}", "udaddy -s {server6}", "cm", ended)
    # The sender waits for three seconds by itself. Soft-RoCE has neither -l nor groups of IPv6.
    for more in ("", "-c 3 -C 4 -S 900"):
        group = f"mckey -m 239.77.3.1 -b {{own}} {more}"
        yield Case(f"mckey {more}".strip(), group, f"{group} -s", "ud", ended)
    yield Case("mckey -o", "mckey -m 239.77.3.2 -b {own}", "mckey -m 239.77.3.2 -b {own} -s -o", "ud", ended)


def pingpong(mtu):
    def case(program, more, gid="{gid}", name=None, **rest):
        ends = f"{program} {{device}} {gid} -p {{port}} -c -n 30 {more}"
        return Case(name or f"{program} {more}".strip(), ends, f"{ends} {{server}}", "tcp", (r"^30 iters in ",), **rest)

    over_ipv6 = {"gid": "{gid6}"}
    if mtu >= 4500:
        yield case("ibv_rc_pingpong", "-m 4096 -s 10000")
        yield case("ibv_rc_pingpong", "-m 4096 -s 10000", **over_ipv6, name="ibv_rc_pingpong -m 4096 over IPv6")
        yield case("ibv_rc_pingpong", "-m 2048 -s 10000")
        yield case("ibv_uc_pingpong", "-m 4096 -s 10000")
        yield case("ibv_ud_pingpong", "-s 4000")
        yield case("ibv_srq_pingpong", "-m 4096 -s 10000")
        return
    yield case("ibv_rc_pingpong", "", is_short=True)
    for more in ("-m 256 -s 1001", "-m 512 -s 5000", "-m 1024 -s 65536", "-e -s 61", "-N"):
        yield case("ibv_rc_pingpong", more)
    yield case("ibv_rc_pingpong", "", **over_ipv6, name="ibv_rc_pingpong over IPv6")
    for more in ("", "-m 256 -s 1001"):
        yield case("ibv_uc_pingpong", more)
    yield case("ibv_uc_pingpong", "", **over_ipv6, name="ibv_uc_pingpong over IPv6")
    yield case("ibv_ud_pingpong", "-s 1000")
    yield case("ibv_ud_pingpong", "-s 1000", **over_ipv6, name="ibv_ud_pingpong over IPv6")
    yield case("ibv_srq_pingpong", "-q 4")
    yield case("ibv_srq_pingpong", "-q 4", **over_ipv6, name="ibv_srq_pingpong over IPv6")


def perftest(mtu):
    def case(program, more):
        ends = f"{program} {{index}} -p {{port}} -n 10 -F {more}"
        return Case(f"{program} {more}".strip(), ends, f"{ends} {{server}}", "cm" if "-R" in more else "tcp")

    if mtu >= 4500:
        for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw -o 4"):
            yield case(program, "-m 4096 -s 65536")
        return
    for service in ("RC", "UC", "UD"):
        yield case("ib_send_lat", f"-c {service} -s 64")
        yield case("ib_send_bw", f"-c {service} -s 1000")
    for service in ("RC", "UC"):
        yield case("ib_write_lat", f"-c {service} -s 3000")
        yield case("ib_write_bw", f"-c {service} -s 8192 -q 2")
    for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw -o 4"):
        yield case(program, "-b -s 65536")
    yield case("ib_send_bw", "-e -s 3000")
    yield case("ib_send_bw", "--use-srq -q 2 -s 3000")
    # -o: each end's own limit is not the other's
    yield case("ib_read_lat", "-s 3000 -o 4")
    yield case("ib_read_bw", "-s 8192 -o 4")
    for atomic in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
        yield case("ib_atomic_lat", f"-A {atomic} -o 4")
        yield case("ib_atomic_bw", f"-A {atomic} -o 4")
    for program in ("ib_send_lat -s 64", "ib_send_lat -c UD -s 64", "ib_send_bw -s 3000", "ib_write_lat -s 3000", "ib_write_bw -s 8192",
                    "ib_read_lat -s 3000 -o 4", "ib_read_bw -s 8192 -o 4", "ib_atomic_lat -o 4", "ib_atomic_bw -o 4"):
        yield case(program, "-R")


def exchange(mtu, scenarios, name="exchange: {}", version="", **rest):
    """Our own program knows what each of its scenarios has to look like at both ends."""
    path_mtu = 4096 if mtu >= 4500 else 1024
    for scenario in scenarios:
        yield Case(name.format(scenario), f"{{exchange}} respond {{own{version}}} {{port}} {scenario}",
                   f"{{exchange}} request {{server{version}}} {{port}} {scenario}", "cm",
                   (rf"^as expected, at path MTU {path_mtu}$",), killed=exchanges.KILLED.get(scenario, ""), **rest)


def bad_network(mtu):
    bad = {"faults": BAD_NEAR, "netem": BAD_FAR, "bound": 180}
    troubled = {"faults": TROUBLED_NEAR, "netem": TROUBLED_FAR, "bound": 180}
    rping = "rping {} -C 10 -S 3000 -V -p {{port}}"
    yield Case("rping that loses packets", rping.format("-s"), rping.format("-c -a {server}"), "cm", **bad)
    yield from exchange(mtu, ("operations", "bursts"), "exchange that loses packets: {}", **bad)
    pingpong_ends = "ibv_rc_pingpong {device} {gid} -p {port} -c -s 9000 -n 50"
    yield Case("ibv_rc_pingpong with copies, out of order", pingpong_ends, pingpong_ends + " {server}", "tcp", (r"^50 iters in ",),
               **troubled)
    yield from exchange(mtu, ("operations", "bursts"), "exchange with copies, out of order: {}", **troubled)


def table(mtu, program):
    everything = exchange(mtu, exchanges.scenarios(program))
    if mtu >= 4500:
        return [*pingpong(mtu), *perftest(mtu), *everything]
    over_ipv6 = exchange(mtu, ("operations", "bursts", "window", "no-listener", "rejected"), "exchange over IPv6: {}", "6")
    return [*rdmacm(), *pingpong(mtu), *perftest(mtu), *everything, *over_ipv6, *bad_network(mtu)]

# SPDX-License-Identifier: MIT
"""What is run between nicless and the kernel. {device}, {gid} and {own} are each end's own, {server} is the server's address."""
import dataclasses
import subprocess

NEAR = {"device": "", "gid": "-g 0", "gid6": "-g 1", "index": "-x 0"}
FAR = {"device": "-d rxe0", "gid": "-g 1", "gid6": "-g 2", "index": "-d rxe0 -x 1"}

# In the guest: ends what a case has left behind.
KILL = "killall -q -KILL exchange rping ucmatose udaddy mckey cmtime rdma_server rdma_client $(cd /usr/bin; ls -d ib_* ibv_*); true"


def until_ready(kind, port):
    """A command of the guest that ends when the server there listens."""
    look = "ss -Hltn 'sport = :%d' | grep -q ." % port if kind == "tcp" else "rdma resource show cm_id | grep -q LISTEN"
    return f"for i in $(seq 300); do {look} && exit 0; sleep 0.1; done; exit 1"


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    server: str
    client: str
    ready: str  # "tcp": the server listens on {port}; "cm": it listens at the connection manager
    prints: tuple = ()  # at both ends
    bound: int = 90
    is_short: bool = False
    killed: str = ""  # the end that kills itself


def rdmacm():
    yield Case("rping", "rping -s -C 5 -V -p {port}", "rping -c -a {server} -C 5 -V -p {port}", "cm", is_short=True)
    yield Case("rping -S 3000", "rping -s -C 5 -V -S 3000 -p {port}", "rping -c -a {server} -C 5 -V -S 3000 -p {port}", "cm")
    yield Case("rping over IPv6", "rping -s -a :: -C 5 -V -p {port}", "rping -c -a {server6} -C 5 -V -p {port}", "cm")
    ended = (r"^return status 0",)
    yield Case("ucmatose -c 4", "ucmatose -c 4 -p {port}", "ucmatose -s {server} -c 4 -p {port}", "cm", ended)
    yield Case("rdma_server and rdma_client", "rdma_server -p {port}", "rdma_client -s {server} -p {port}", "cm",
               (r"^rdma_(server|client): end 0",))


def pingpong(mtu):
    def case(program, more, gid="{gid}", name=None, server="{server}", **rest):
        ends = f"{program} {{device}} {gid} -p {{port}} -n 30 {more}"
        return Case(name or f"{program} {more}".strip(), ends, f"{ends} {server}", "tcp", (r"^30 iters in ",), **rest)

    if mtu >= 4500:
        yield case("ibv_rc_pingpong", "-m 4096 -s 10000")
        return
    yield case("ibv_rc_pingpong", "", is_short=True)
    yield case("ibv_rc_pingpong", "-m 256 -s 1001")
    yield case("ibv_rc_pingpong", "-m 1024 -s 65536")
    yield case("ibv_rc_pingpong", "-e -s 61")
    yield case("ibv_rc_pingpong", "", gid="{gid6}", name="ibv_rc_pingpong over IPv6")
    yield case("ibv_uc_pingpong", "")
    yield case("ibv_ud_pingpong", "-s 1000")
    yield case("ibv_ud_pingpong", "-s 1000", gid="{gid6}", name="ibv_ud_pingpong over IPv6")
    yield case("ibv_srq_pingpong", "-q 4")


def perftest():
    def case(program, more):
        ends = f"{program} {{index}} -p {{port}} -n 10 -F {more}"
        return Case(f"{program} {more}".strip(), ends, f"{ends} {{server}}", "cm" if "-R" in more else "tcp")

    for service in ("RC", "UC", "UD"):
        yield case("ib_send_lat", f"-c {service} -s 64")
        yield case("ib_send_bw", f"-c {service} -s 1000")
    for service in ("RC", "UC"):
        yield case("ib_write_lat", f"-c {service} -s 3000")
        yield case("ib_write_bw", f"-c {service} -s 8192 -q 2")
    # -o: each end's own limit is not the other's
    yield case("ib_read_lat", "-s 3000 -o 4")
    yield case("ib_read_bw", "-s 8192 -o 4")
    for atomic in ("CMP_AND_SWAP", "FETCH_AND_ADD"):
        yield case("ib_atomic_lat", f"-A {atomic} -o 4")
        yield case("ib_atomic_bw", f"-A {atomic} -o 4")
    yield case("ib_send_lat", "-R -s 64")


def exchange(mtu, program):
    """Our own program knows what each of its scenarios has to look like at both ends."""
    path_mtu = 4096 if mtu >= 4500 else 1024
    scenarios = subprocess.run([program, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for name in scenarios:
        yield Case(f"exchange: {name}", f"{{exchange}} respond {{own}} {{port}} {name}",
                   f"{{exchange}} request {{server}} {{port}} {name}", "cm", (rf"^as expected, at path MTU {path_mtu}$",),
                   killed={"requester-killed": "client", "responder-killed": "server"}.get(name, ""))


def table(mtu, program):
    if mtu >= 4500:
        return [*pingpong(mtu), *exchange(mtu, program)]
    return [*rdmacm(), *pingpong(mtu), *perftest(), *exchange(mtu, program)]

# SPDX-License-Identifier: MIT
"""The table of program pairs: what is run on both ends, how one sees that the server is ready, what has to be printed.

In arguments, {port} is a free port, {server} and {server6} are the server's addresses, {gid} and {gid6} are indexes of
an IPv4 and an IPv6 GID in the device's table. The same table serves loopback and the two namespaces.
"""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Pair:
    """A server and its clients, one after the other. Patterns are searched line by line in each output."""

    name: str
    server: str
    client: str
    ready: str  # "udp" or "tcp": the server has bound {port}
    server_prints: tuple = ()
    client_prints: tuple = ()
    server_status: int = 0
    clients: int = 1  # so many, one after the other
    is_persistent: bool = False  # the server does not end by itself: it is still there after the last client
    launch: str = "launcher"
    pcap: bool = True
    bound: int = 30  # seconds, for the whole exchange
    options: tuple = ()  # of nicless run


def rdma_client_server():
    ends = dict(server="rdma_server -p {port}", client="rdma_client -s {server} -p {port}", ready="udp",
                server_prints=(r"^rdma_server: end 0",), client_prints=(r"^rdma_client: end 0",))
    yield Pair("rdma_server and rdma_client", **ends)
    yield Pair("rdma_server and rdma_client by LD_LIBRARY_PATH alone", launch="library_path", **ends)


def rping():
    def pair(name, more="", address="{server}", **rest):
        return Pair(f"rping {name}", f"rping -s -a {address} -p {{port}} {more}",
                    f"rping -c -a {address} -p {{port}} {more}", "udp", **rest)

    pings = (r"ping data: rdma-ping-0: ABCDEFG", r"ping data: rdma-ping-9: JKLMNOP")
    hundred = (r"ping data: rdma-ping-0: ", r"ping data: rdma-ping-99: ")
    ended = (r"DISCONNECT EVENT",)
    yield pair("-C 10 -v", "-C 10 -v", client_prints=pings)
    yield pair("-C 100 -v -V", "-C 100 -v -V", client_prints=hundred, server_prints=ended)
    yield pair("-C 20 -S 65535 -V", "-C 20 -S 65535 -V", server_prints=ended)
    yield pair("over IPv6", "-C 10 -v -V", address="{server6}", client_prints=pings)
    yield pair("with its own queue pair", "-C 10 -v -V -q", client_prints=pings)
    yield pair("by LD_LIBRARY_PATH alone", "-C 10 -v -V", client_prints=pings, launch="library_path")
    yield Pair("rping persistent server, five clients", "rping -s -P -a {server} -p {port}",
               "rping -c -a {server} -p {port} -C 10 -v -V", "udp", client_prints=pings, clients=5, is_persistent=True)


def ucmatose():
    printed = (r"^data transfers complete", r"^return status 0")
    for more in ("", "-c 10", "-C 100", "-S 100000", "-c 4 -C 20 -S 5000"):
        yield Pair(f"ucmatose {more}".strip(), f"ucmatose -p {{port}} {more}",
                   f"ucmatose -s {{server}} -p {{port}} {more}", "udp", printed, printed)
    yield Pair("ucmatose over IPv6", "ucmatose -b {server6} -p {port}", "ucmatose -s {server6} -p {port}", "udp",
               printed, printed)


def pingpong():
    def pair(program, more, iterations, name=None, **rest):
        command = f"{program} -p {{port}} -n {iterations} {more}"
        printed = (r"bytes in [0-9.]+ seconds = ", rf"^{iterations} iters in ")
        return Pair(name or f"{program} {more}".replace("{gid}", "0").replace("{gid6}", "N"), command,
                    command + " {server}", "tcp", printed, printed, **rest)

    yield pair("ibv_rc_pingpong", "-g {gid}", 1000)
    yield pair("ibv_rc_pingpong", "-g {gid} -e", 500)
    yield pair("ibv_rc_pingpong", "-g {gid} -c", 200)
    yield pair("ibv_rc_pingpong", "-g {gid6} -c", 200, name="ibv_rc_pingpong over IPv6")
    yield pair("ibv_rc_pingpong", "-g {gid} -m 256 -c", 200)
    yield pair("ibv_rc_pingpong", "-g {gid} -e -c -s 100000 -m 256", 50)
    for size in (1, 2, 255, 256, 257, 1023, 1024, 1025, 4097, 65536, 1 << 20):
        yield pair("ibv_rc_pingpong", f"-g {{gid}} -c -r 20 -s {size}", 50 if size < 100000 else 20)
    yield pair("ibv_rc_pingpong", "-g {gid}", 1000, name="ibv_rc_pingpong by LD_LIBRARY_PATH alone",
               launch="library_path")
    # queue pairs on one shared receive queue: 16 by default
    yield pair("ibv_srq_pingpong", "-g {gid}", 200)
    yield pair("ibv_srq_pingpong", "-g {gid} -e", 100)
    yield pair("ibv_srq_pingpong", "-g {gid} -c -q 4 -s 9000", 100)


    # unreliable: one message is under way at a time, so none is lost
    yield pair("ibv_uc_pingpong", "-g {gid} -c", 200)
    yield pair("ibv_ud_pingpong", "-g {gid} -c -s 1000", 200)


def perftest():
    # One row of figures: bytes, iterations, then numbers.
    def pair(program, more, size, iterations, **rest):
        command = f"{program} -F -p {{port}} -s {size} -n {iterations} {more}"
        row = (rf"^ *{size} +{rest.pop('rows', iterations)}\s+[0-9.]+\s+[0-9.]+\s+[0-9.]+",)
        ready = "udp" if "-R" in more.split() else "tcp"
        server_row = row if program == "ib_send_lat" else ()
        return Pair(rest.pop("name", f"{program} -s {size} {more}".strip()), command, command + " {server}", ready,
                    server_row, row, bound=60, **rest)

    yield pair("ib_send_lat", "", 2, 500)
    yield pair("ib_send_lat", "", 64, 500, launch="library_path", name="ib_send_lat by LD_LIBRARY_PATH alone")
    yield pair("ib_send_lat", "-e", 64, 200)
    yield pair("ib_send_lat", "-R", 64, 200)
    yield pair("ib_send_lat", "-R -e", 3000, 200)
    yield pair("ib_send_lat", "-I 0", 2000, 200)
    yield pair("ib_send_bw", "", 65536, 500)
    yield pair("ib_send_bw", "-e", 65536, 200)
    yield pair("ib_send_bw", "-R", 65536, 200)
    yield pair("ib_send_bw", "-R -e", 8192, 200)
    yield pair("ib_send_bw", "-b -q 4", 65536, 200, rows=800)
    yield pair("ib_send_bw", "", 65536, 500, launch="library_path", name="ib_send_bw by LD_LIBRARY_PATH alone")


    # one-sided: the target calls nothing while it is read and written
    yield pair("ib_write_lat", "", 64, 50)
    yield pair("ib_write_bw", "", 65536, 200)
    yield pair("ib_read_lat", "", 3000, 200)
    yield pair("ib_read_bw", "", 65536, 200)
    yield pair("ib_send_lat", "-c UC", 64, 200)
    yield pair("ib_send_lat", "-c UD", 64, 200)


def cmtime():
    yield Pair("cmtime -c 20", "cmtime -p {port} -c 20", "cmtime -p {port} -c 20 -s {server}", "udp",
               client_prints=(r"^connect +: ", r"^disconnect +: "), is_persistent=True)


def table():
    return [*rdma_client_server(), *rping(), *ucmatose(), *cmtime(), *pingpong(), *perftest()]


def run_pair(world, pair, gids):
    """Runs both ends; raises Failure where a claim does not hold."""
    values = dict(port=world.free_port(), server=world.address, server6=world.address6, gid=gids[0], gid6=gids[1])

    def command(text):
        return text.format(**values).split()

    how = dict(launch=pair.launch, pcap=pair.pcap, options=pair.options)
    server = world.start("server", command(pair.server), host="a", **how)
    server.wait_port(pair.ready, values["port"], world.bound(10))
    for number in range(pair.clients):
        role = "client" if pair.clients == 1 else f"client{number + 1}"
        client = world.start(role, command(pair.client), host="b", **how)
        client.expect_end(world.bound(pair.bound), 0, pair.client_prints)
    if pair.is_persistent:
        server.expect_running()
    else:
        server.expect_end(world.bound(pair.bound), pair.server_status, pair.server_prints)

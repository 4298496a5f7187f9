# SPDX-License-Identifier: MIT
"""Pairs of librdmacm's own programs."""
from pairs import Pair


def rdma_client_server():
    ends = dict(server="rdma_server -p {port}", client="rdma_client -s {server} -p {port}", ready="udp",
                server_prints=(r"^rdma_server: end 0",), client_prints=(r"^rdma_client: end 0",))
    yield Pair("rdma_server and rdma_client", **ends)
    yield Pair("rdma_server and rdma_client by LD_LIBRARY_PATH alone", launch="library_path", **ends)
    yield Pair("rdma_server and rdma_client over IPv6", **{**ends, "server": "rdma_server -s {server6} -p {port}",
                                                           "client": "rdma_client -s {server6} -p {port}"})


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
    yield pair("-I", "-C 10 -v -V -I {client}", client_prints=pings)
    yield pair("-d", "-C 3 -d -V")
    yield pair("by LD_LIBRARY_PATH alone", "-C 10 -v -V", client_prints=pings, launch="library_path")
    yield Pair("rping bound to a loopback address that no device has", "rping -s -a 127.0.0.1 -p {port} -C 10 -V",
               "rping -c -a {server} -p {port} -C 10 -v -V", "udp", client_prints=pings, only_on="netns",
               env=(("NICLESS_DEVICES", "nicless0=veth0"),))
    yield Pair("rping persistent server, five clients", "rping -s -P -a {server} -p {port}",
               "rping -c -a {server} -p {port} -C 10 -v -V", "udp", client_prints=pings, clients=5, is_persistent=True)


def ucmatose():
    printed = (r"^data transfers complete", r"^return status 0")
    for more in ("", "-c 10", "-C 100", "-S 100000", "-c 4 -C 20 -S 5000", "-t 32 -c 2", "-m -c 3", "-f ip", "-P ib",
                 "-a 14"):
        yield Pair(f"ucmatose {more}".strip(), f"ucmatose -p {{port}} {more}",
                   f"ucmatose -s {{server}} -p {{port}} {more}", "udp", printed, printed)
    # As with the kernel: over RoCE a GID is no address to go to, but all of them are one to listen on.
    yield Pair("ucmatose -f gid (the server)", "ucmatose -p {port} -f gid", "ucmatose -s {server} -p {port}", "udp", printed,
               printed)
    yield Pair("ucmatose over IPv6", "ucmatose -b {server6} -p {port}", "ucmatose -s {server6} -p {port}", "udp",
               printed, printed)


def rdma_xclient_xserver():
    for more in ("", "-c x"):
        yield Pair(f"rdma_xserver and rdma_xclient {more}".strip(), f"rdma_xserver -p {{port}} {more}",
                   f"rdma_xclient -s {{server}} -p {{port}} {more}", "udp", (r"^rdma_xserver: end 0",),
                   (r"^rdma_xclient: end 0",))


def udaddy():
    """Its service is on port 7174, whatever is said."""
    printed = (r"^data transfers complete", r"^return status 0")
    for more in ("", "-c 10", "-C 50 -S 1", "-c 3 -C 8 -S 900", "-p 2", "-P ipoib", "-t 32 -f ip"):
        yield Pair(f"udaddy {more}".strip(), f"udaddy -b {{server}} {more}", f"udaddy -s {{server}} {more}", "udp",
                   printed, printed, port=7174)
    yield Pair("udaddy -f gid (the server)", "udaddy -f gid", "udaddy -s {server}", "udp", printed, printed, port=7174)
    yield Pair("udaddy over IPv6", "udaddy -b {server6}", "udaddy -s {server6}", "udp", printed, printed, port=7174)


def mckey():
    """A group for each case: they are the machine's. The sender waits three seconds by itself. It is in the group and
    posts no receive; what it hears of itself, and of the others of its process, is no loss that anybody has to hear of.
    Where there are several senders, each receiver is sent what all of them send, and has receives for those of one."""
    too_many = r"^nicless: qp \w+ dropped a datagram from qp \w+ of \S+: no receive was posted"

    def pair(more, group, option="-m", version="", name="", sender="", **rest):
        end = f"mckey {option} {group} -b {{{{{{end}}{version}}}}} {more}".strip()
        printed = (rf"^mckey: joined dgid: (::ffff:)?{group} ", r"^data transfers complete", r"^return status 0")
        return Pair(name or f"mckey {more}".strip(), end.format(end="server"), end.format(end="client") + f" -s {sender}",
                    "udp", printed, printed, ready_port=4791, **rest)

    yield pair("", "239.77.1.1")
    yield pair("-c 5 -C 3 -S 900", "239.77.1.2", complaints=too_many)
    yield pair("-p 2 -C 20", "239.77.1.3")
    yield pair("", "239.77.1.4", sender="-o", name="mckey -o (the sender joins to send only)")
    yield pair("-l", "239.77.1.5")
    yield pair("", "ff15::77:1", "-M", name="mckey -M")
    yield pair("", "ff15::77:2", version="6", name="mckey over IPv6", only_on="netns")


def cmtime():
    """It destroys the CQ and its channel before the queue pairs that complete there."""
    def pair(more, server="{server}"):
        command = f"cmtime -p {{port}} {more}"
        return Pair(f"cmtime {more}".replace("{client}", "ADDRESS"), command.replace("-b {client}", "-b {server}"),
                    command + f" -s {server}", "udp", client_prints=(r"^connect +: ", r"^disconnect +: "),
                    is_persistent=True, complaints=r"^nicless: ibv_destroy_(cq|comp_channel): EBUSY")

    yield pair("-c 20")
    yield pair("-c 50 -b {client} -r 1 -t 500")
    yield pair("-c 10 -b ::", "{server6}")


def table():
    return [*rdma_client_server(), *rdma_xclient_xserver(), *rping(), *ucmatose(), *udaddy(), *mckey(), *cmtime()]

# SPDX-License-Identifier: MIT
"""Strict RoCE v2: everything on UDP port 4791, so that an address serves one process. On loopback each end of each case
has an address of its own; two namespaces are two hosts and need none."""
import functools
import itertools
import os

from exchange import KILLED
from harness import FAILS
from single import gid_indexes



def both(command, prints):
    """The same at both ends, and the server's address behind it at the client's."""
    program, _, options = command.partition(" ")
    command = f"{program} -p {{port}} {options}"
    return f"{program} {options}".replace("{gid6}", "N"), command, f"{command} {{server}}", prints


# The addresses of one case. They hold a port number that everybody wants: runs side by side keep apart by their process.
LOOPBACK = (f"127.{32 + os.getpid() % 192}.{number}." for number in itertools.count(1))

PROGRAMS = (
    # name, server, client, what both print
    ("rping", "rping -s -a {server} -C 10 -V", "rping -c -a {server} -C 10 -V", ()),
    ("rping -S 3000", "rping -s -a {server} -C 10 -V -S 3000", "rping -c -a {server} -C 10 -V -S 3000", ()),
    ("ucmatose -c 4", "ucmatose -b {server} -c 4", "ucmatose -s {server} -c 4", (r"^return status 0",)),
    ("udaddy -c 4", "udaddy -b {server} -c 4", "udaddy -s {server} -c 4", (r"^return status 0",)),
    ("mckey", "mckey -m 239.77.2.1 -b {server} -C 3", "mckey -m 239.77.2.1 -s -b {client} -C 3", (r"^return status 0",)),
    ("rdma_server and rdma_client", "rdma_server", "rdma_client -s {server}", (r"^rdma_(server|client): end 0",)),
    ("ibv_rc_pingpong", "ibv_rc_pingpong -g 0 -p {port} -c", "ibv_rc_pingpong -g 0 -p {port} -c {server}", (r"^1000 iters",)),
    ("ibv_uc_pingpong", "ibv_uc_pingpong -g 0 -p {port} -c", "ibv_uc_pingpong -g 0 -p {port} -c {server}", (r"^1000 iters",)),
    ("ibv_ud_pingpong", "ibv_ud_pingpong -g 0 -p {port} -c", "ibv_ud_pingpong -g 0 -p {port} -c {server}", (r"^1000 iters",)),
    *(both(program, (r"^\d+ iters in ",)) for program in (
        "ibv_rc_pingpong -g 0 -c -m 256 -s 5000 -n 200", "ibv_uc_pingpong -g 0 -c -m 256 -s 5000 -n 200",
        "ibv_rc_pingpong -g 0 -c -e -s 65536 -n 100", "ibv_srq_pingpong -g 0 -c -q 4 -n 500")),
    both("ibv_xsrq_pingpong -g 0 -n 200", (r"^success",)),
    *(both(f"{program} -F -n 200", ()) for program in (
        "ib_send_bw -q 4", "ib_send_bw -c UC", "ib_send_bw -c UD -s 1024", "ib_send_lat -s 64", "ib_send_lat -c UD -s 64",
        "ib_write_bw -s 65536 -q 2", "ib_write_lat", "ib_read_bw -s 65536", "ib_read_lat", "ib_atomic_bw -A FETCH_AND_ADD",
        "ib_atomic_lat -A CMP_AND_SWAP", "ib_write_bw -R", "ib_send_lat -R -s 64")),
)

# Where an address has its own end of IPv6 (on loopback there is one alone), and where frames are large.
ON_HOSTS = (
    ("rping over IPv6", "rping -s -a {server6} -C 10 -V", "rping -c -a {server6} -C 10 -V", ()),
    ("udaddy over IPv6", "udaddy -b {server6}", "udaddy -s {server6}", (r"^return status 0",)),
    *(both(f"{program} -g {{gid6}}", (r"^\d+ iters in ",)) for program in (
        "ibv_rc_pingpong -c", "ibv_uc_pingpong -c", "ibv_ud_pingpong -c", "ibv_srq_pingpong -c")),
    both("ib_write_bw -F -n 200 -x {gid6}", ()),
)
ON_LOOPBACK = (both("ibv_rc_pingpong -g 0 -c -m 4096 -s 20000 -n 200", (r"^\d+ iters in ",)),)


def ends(world):
    """(address, environment) of the server and of the client."""
    if world.name != "loopback":
        world.certain_port(4791)  # which those have, too, who are in multicast groups
        return (world.address, {}), (world.client, {})
    prefix = next(LOOPBACK)
    return tuple((prefix + last, {"NICLESS_DEVICES": f"nicless0={prefix}{last}"}) for last in ("1", "2"))


def program(world, server, client, prints):
    (address, server_env), (client_address, client_env) = ends(world)
    values = dict(server=address, client=client_address, server6=world.address6, port=world.free_port())
    if "{gid6}" in server:
        values["gid6"] = world.once(gid_indexes)[1]
    ready = "tcp" if "{port}" in server and " -R" not in server else "udp"
    first = world.start("server", server.format(**values).split(), options=("--rocev2",), env=server_env)
    first.wait_port(ready, values["port"] if ready == "tcp" else 4791, world.bound(10))
    world.run("client", client.format(**values).split(), host="b", options=("--rocev2",), env=client_env,
              bound=30, prints=prints)
    first.expect_end(world.bound(10), 0, prints)


def address_taken(world):
    """A second process at the same address: the sentence names the address and says what to do."""
    (address, env), _ = ends(world)
    first = world.start("first", ["rping", "-s", "-a", address], options=("--rocev2",), env=env)
    first.wait_port("udp", 4791, world.bound(10))
    world.run("second", ["rping", "-s", "-a", address], options=("--rocev2",), env=env, status=FAILS,
              prints=(r"^nicless: UDP port 4791 of .* is taken .*NICLESS_DEVICES=nicless0=127\.0\.0\.2",))
    first.expect_running()


def no_listener(world):
    """QP 1 of a process where nobody listens on that port says so."""
    (address, env), (_, client_env) = ends(world)
    first = world.start("first", ["rping", "-s", "-a", address, "-p", 7471], options=("--rocev2",), env=env)
    first.wait_port("udp", 4791, world.bound(10))
    world.run("client", ["rping", "-c", "-a", address, "-p", 7472], host="b", options=("--rocev2",), env=client_env,
              status=FAILS, prints=(r"REJECTED, error 8",))
    first.expect_running()


def no_connection_manager(world):
    """QP 1 of a process that has no librdmacm says so, too."""
    (address, env), (_, client_env) = ends(world)
    port = world.free_port()
    first = world.start("first", ["ibv_rc_pingpong", "-g", 0, "-p", port], options=("--rocev2",), env=env)
    first.wait_port("tcp", port, world.bound(10))
    world.run("client", ["rping", "-c", "-a", address], host="b", options=("--rocev2",), env=client_env, status=FAILS,
              prints=(r"REJECTED, error 8",))
    first.expect_running()


def ending(world, scenario):
    """An end that exits or is killed as it stands: the other one sees DISCONNECTED."""
    (address, env), (_, client_env) = ends(world)
    port = world.free_port()
    words = (address, port, scenario)
    server = world.start("server", [world.options.exchange, "respond", *words], options=("--rocev2",), env=env)
    server.wait_port("udp", 4791, world.bound(10))
    client = world.start("client", [world.options.exchange, "request", *words], host="b", options=("--rocev2",),
                         env=client_env)
    for end in (client, server):
        if end.role == KILLED.get(scenario):
            end.expect_end(world.bound(30), end.KILLED)
        else:
            end.expect_end(world.bound(30), 0, (r"^as expected",))


def table(world):
    """On two hosts the cases would have the same addresses and run side by side: there it is one case of all."""
    cases = [(name, functools.partial(program, server=server, client=client, prints=prints))
             for name, server, client, prints in
             (*PROGRAMS, *(ON_LOOPBACK if world.name == "loopback" else ON_HOSTS))]
    cases += [("address taken", address_taken), ("no listener", no_listener),
              ("no connection manager", no_connection_manager)]
    cases += [(f"exchange {name}", functools.partial(ending, scenario=name))
              for name in ("requester-killed", "responder-killed", "requester-exits", "responder-exits")]
    if world.name == "loopback":
        return [(f"strict RoCE v2: {name}", case) for name, case in cases]

    def all_of_them(its_world):
        for _, case in cases:
            case(its_world)
            its_world.finish()
            its_world.processes.clear()

    return [("strict RoCE v2", all_of_them)]

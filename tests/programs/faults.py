# SPDX-License-Identifier: MIT
"""Programs under `nicless run --loss` and its kin: those that are reliable finish with the right data, and those that have to
see an error see the one that was asked for.

Both ends have faults, so that requests and answers are lost alike. The seeds are chosen so that a case takes a few seconds: a
message whose last packet is lost waits for the local ACK timeout, as it would on a real network.
"""
import pathlib
import re

from harness import ANY, Failure
from pairs import Pair, run_pair
from single import gid_indexes

BAD = ("--loss", "2%", "--duplicate", "2%", "--reorder", "3%", "--corrupt", "1%", "--delay", "100us", "--seed", "7")
TROUBLED = ("--duplicate", "20%", "--reorder", "20%", "--delay", "50us", "--seed", "7")  # nothing is lost
SUMMARY = r"^nicless: faults: of (\d+) datagrams sent (\d+) were lost, (\d+) sent twice, (\d+) delayed behind others, (\d+) corrupted"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "faults_in_ci.sh"


def faulty(name, server, client, ready, prints, options=BAD, **rest):
    named = " ".join(options).replace("--", "")
    return Pair(f"{name} under {named}", server, client, ready, prints, prints, options=("--log", "info", *options),
                check=both_were_hit, complaints="^nicless: (faults|packets): ", bound=90, **rest)


def both_were_hit(server, client):
    for role, text in (("server", server), ("client", client)):
        found = re.search(SUMMARY, text, re.MULTILINE)
        if not found:
            raise Failure(f"{role} does not say which faults there were")
        if not re.search(r"^nicless: packets: [1-9]\d* sent, [1-9]\d* received", text, re.MULTILINE):
            raise Failure(f"{role} does not say what it has counted")
        if not any(int(number) for number in found.groups()[1:]):
            raise Failure(f"nothing befell {role}'s datagrams: {found.group(0)}")


def pairs():
    rping = "rping {} -a {{server}} -p {{port}} -C 20 -S 20000 -V"
    yield faulty("rping", rping.format("-s"), rping.format("-c"), "udp", ())
    yield faulty("rping", rping.format("-s"), rping.format("-c"), "udp", (), TROUBLED)
    pingpong = "ibv_{}_pingpong -g {{gid}} -p {{port}} -c -s 9000 -n 50"
    for kind in ("rc", "srq"):
        command = pingpong.format(kind)
        yield faulty(f"ibv_{kind}_pingpong", command, command + " {server}", "tcp", (r"^50 iters in ",), TROUBLED)
    done = (r"^data transfers complete", r"^return status 0")
    yield faulty("ucmatose", "ucmatose -p {port} -c 4", "ucmatose -s {server} -p {port} -c 4", "udp", done)
    doubled = ("--duplicate", "100%", "--seed", "7")
    yield faulty("udaddy", "udaddy -c 4 -C 0", "udaddy -s {server} -c 4 -C 0", "udp", (r"^return status 0",), doubled,
                 port=7174)
    for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
        command = f"{program} -F -p {{port}} -s 65536 -n 50"
        yield faulty(program, command, command + " {server}", "tcp", ())
    atomic = "ib_atomic_bw -F -p {port} -n 50"
    yield faulty("ib_atomic_bw", atomic, atomic + " {server}", "tcp", ())
    uc = "ibv_uc_pingpong -g {gid} -p {port} -c -n 50"
    yield Pair("ibv_uc_pingpong under delay 1ms", uc, uc + " {server}", "tcp", (r"^50 iters in ",), (r"^50 iters in ",),
               options=("--delay", "1ms"))


def pingpong_on_a_bad_network(world):
    """What arrives is right. The two part without a word, so the end that waits for the very last acknowledgement, which may be
    lost after the other has gone, may fail, as on any network; not both can."""
    gid = str(world.once(gid_indexes)[0])
    port = world.free_port()
    command = ["ibv_rc_pingpong", "-g", gid, "-p", port, "-c", "-s", 20000, "-n", 100]
    how = dict(options=("--log", "info", *BAD), pcap=False)
    server = world.start("server", command, **how)
    server.wait_port("tcp", port, world.bound(10))
    client = world.start("client", [*command, world.address], host="b", **how)
    ends = [(process, process.wait_end(world.bound(90))) for process in (server, client)]
    done = [process for process, status in ends if status == 0 and re.search(r"^100 iters in ", process.text, re.MULTILINE)]
    gone = [process for process, status in ends if re.search(r"retry counter exceeded \(12\)", process.text)]
    if not done or len(done) + len(gone) != 2:
        raise Failure(f"{len(done)} finished, {len(gone)} missed the last acknowledgement")
    if any("invalid data" in process.text for process in (server, client)):
        raise Failure("wrong data arrived")
    both_were_hit(server.text, client.text)


def unreliable_loses(world):
    """A lost datagram is a lost message: the pingpong of two unreliable ends stands still, and nobody says a word."""
    port = world.free_port()
    command = ["ibv_ud_pingpong", "-g", "0", "-p", port]
    server = world.start("server", command, pcap=False)
    server.wait_port("tcp", port, world.bound(10))
    client = world.start("client", [*command, world.address], host="b", pcap=False, options=("--loss", "100%", "--seed", "1"))
    client.wait_output(r"remote address: ", world.bound(10))
    server.wait_output(r"remote address: ", world.bound(10))
    server.expect_running()
    client.expect_running()


def rnr_is_survived(world):
    """The receiver's first messages find no receive: they are sent again, and nothing is lost."""
    command = "rping {} -a {{server}} -p {{port}} -C 5 -v -V"
    run_pair(world, Pair("", command.format("-s"), command.format("-c"), "udp", options=("--log", "info", "--rnr", "3"),
                         server_prints=(r"^nicless: faults: 3 messages found no receive",),
                         client_prints=(r"ping data: rdma-ping-4: ",), complaints="^nicless: (faults|packets): "))


def failed_request_is_seen(world):
    """The client's third send fails as if its peer had gone, and the program takes the path that it has for that."""
    port = world.free_port()
    server = world.start("server", ["rping", "-s", "-a", world.address, "-p", port], pcap=False)
    server.wait_port("udp", port, world.bound(10))
    client = world.start("client", ["rping", "-c", "-v", "-a", world.address, "-p", port], host="b",
                         options=("--fail", "3:RETRY_EXC_ERR"))
    client.expect_end(world.bound(20), ANY, (r"^cq completion failed status 12", r"^nicless: qp 0x[0-9a-f]{6} send wr_id "
                                             r"0x0: completes with RETRY_EXC_ERR because nicless run --fail asked for it"))
    server.expect_end(world.bound(20), ANY)


def example_in_ci(world):
    """What docs/FAULTS.md shows is a script that works."""
    if EXAMPLE.read_text(encoding="utf-8").split("set -eu\n")[1].strip() not in EXAMPLE.parents[1].joinpath(
            "docs/FAULTS.md").read_text(encoding="utf-8"):
        raise Failure("docs/FAULTS.md does not show examples/faults_in_ci.sh")
    world.run("ci", ["sh", EXAMPLE], bound=60, launch="bare", pcap=False,
              env={"PATH": f"{world.options.launcher.parent}:/usr/bin:/bin", "PORT": str(world.free_port())},
              prints=(r"^survives a bad network$", r"^notices that its peer is gone$"))


def table(world):
    cases = [pingpong_on_a_bad_network, unreliable_loses, rnr_is_survived, failed_request_is_seen]
    if world.name == "loopback":
        cases.append(example_in_ci)
    return [(case.__name__.replace("_", " "), case) for case in cases]

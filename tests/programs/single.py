# SPDX-License-Identifier: MIT
"""Cases of one program, and of what happens when something is wrong. Each is a function that takes the world."""
import random
import re
import signal
import socket

from harness import ANY, FAILS, Failure, ports_of


def gid_indexes(world):
    """Indexes of an IPv4 and of an IPv6 GID that the other host can use (on loopback: the loopback addresses)."""
    text = world.run("devinfo", ["ibv_devinfo", "-v"], host="b", pcap=False)
    own = ("127.0.0.1", "::1") if world.name == "loopback" else ("10.78.0.2", "fd78::2")
    rows = re.findall(r"GID\[ *(\d+)\]:\s+(\S+?),", text)
    found = []
    for address in ("::ffff:" + own[0], own[1]):
        matching = [int(index) for index, gid in rows if gid == address]
        if not matching:
            raise Failure(f"no GID {address} in the table of ibv_devinfo -v: {rows}")
        found.append(matching[0])
    return found


def ibv_devices(world):
    world.run("ibv_devices", ["ibv_devices"], prints=(r"^ *nicless0\s+[0-9a-f]{16}\s*$",), pcap=False)


def ibv_devinfo(world):
    mtu = ("4096", "4096") if world.name == "loopback" else ("4096", "1024")
    text = world.run("ibv_devinfo", ["ibv_devinfo", "-v"], pcap=False, prints=(
        r"^hca_id:\s+nicless0", r"transport:\s+InfiniBand \(0\)", r"state:\s+PORT_ACTIVE \(4\)",
        r"link_layer:\s+Ethernet", r"max_sge:\s+[1-9]", r"active_mtu:\s+(\d+)", r"GID\[ *0\]:.*RoCE v2"))
    active = re.search(r"active_mtu:\s+(\d+)", text).group(1)
    if world.name == "netns" and active != mtu[1]:
        raise Failure(f"active_mtu is {active} on a link of 1500 bytes, not {mtu[1]}")
    if len(re.findall(r"GID\[ *\d+\]:", text)) < 4:
        raise Failure("fewer than four GIDs")


def ibv_devinfo_options(world):
    world.run("list", ["ibv_devinfo", "-l"], pcap=False, prints=(r"^1 HCA found:", r"^\s+nicless0$"))
    world.run("one", ["ibv_devinfo", "-d", "nicless0", "-i", 1], pcap=False,
              prints=(r"^hca_id:\s+nicless0", r"^\s+port:\s+1$"))
    world.run("none", ["ibv_devinfo", "-d", "mlx5_0"], pcap=False, status=FAILS,
              prints=(r"^IB device 'mlx5_0' wasn't found",))


def ibv_asyncwatch(world):
    """It waits for events of the device. None comes by itself; tests/provider/port_watch_test.py brings some about."""
    watch = world.start("watch", ["ibv_asyncwatch"], pcap=False)
    watch.wait_output(r"^nicless0: async event FD \d+", world.bound(10))
    watch.expect_running()
    world.run("other", ["ibv_asyncwatch", "-d", "mlx5_0"], pcap=False, status=FAILS,
              prints=(r"^IB device mlx5_0 not found",))


def devices_by_library_path(world):
    world.run("ibv_devices", ["ibv_devices"], launch="library_path", prints=(r"^ *nicless0\s",))


def recvv(world):
    prints = (r"posted one receive with a list of the three", r"one message of 86 bytes has arrived",
              r"buffer 'head' got 16 of its 16", r"buffer 'body' got 56 of its 56", r"buffer 'tail' got 14 of its 64",
              r"^receiver all as it should be")
    if world.name == "loopback":
        world.run("recvv", [world.options.examples / "recvv"], prints=prints, pcap=False)
        return
    port = world.free_port()
    server = world.start("server", [world.options.examples / "recvv", "-s", "-p", port])
    server.wait_port("udp", port, world.bound(10))
    world.run("client", [world.options.examples / "recvv", "-c", world.address, "-p", port], host="b")
    server.expect_end(world.bound(10), 0, prints)


def pingpong_ex(world):
    """The example of the extended verbs: both ends in one process."""
    text = world.run("pingpong_ex", [world.options.examples / "pingpong_ex", 5], pcap=False,
                     prints=(r'^round 1: "ping says 1" and back in \d+ ns', r"^5 rounds as they should be"))
    if len(re.findall(r"^round ", text, re.MULTILINE)) != 5:
        raise Failure("not five rounds")


# ---------------------------------------------------------------- what is wrong, and what is said about it


def no_listener(world):
    """Refused at once: long before the connection manager's retries would be over (a minute)."""
    port = world.free_port()
    world.run("rping", ["rping", "-c", "-a", world.address, "-p", port], host="b", bound=5, status=FAILS,
              prints=(r"REJECTED, error 8",))
    world.run("rdma_client", ["rdma_client", "-s", world.address, "-p", port], host="b", bound=5, status=FAILS,
              prints=(r"rdma_connect: Connection refused",))


def port_in_use(world):
    """The port space is the operating system's: a plain UDP socket is enough to have the port."""
    if world.name != "loopback":
        port = world.free_port()
        first = world.start("first", ["rping", "-s", "-a", world.address, "-p", port])
        first.wait_port("udp", port, world.bound(10))
        world.run("second", ["rping", "-s", "-a", world.address, "-p", port], status=FAILS,
                  prints=(r"Address already in use",))
        first.expect_running()
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        world.run("rping", ["rping", "-s", "-a", "127.0.0.1", "-p", port], status=FAILS,
                  prints=(r"Address already in use",))


def killed_peer(world):
    """The receiver is killed while a stream comes in: a work request of the sender fails as with hardware."""
    port = world.free_port()
    command = ["ib_send_bw", "-F", "-p", port, "-s", 4096, "-n", 10000000]
    recording = world.folder / "stream.pcapng"  # how the case sees that data flows
    server = world.start("server", command, pcap=False)
    server.wait_port("tcp", port, world.bound(10))
    client = world.start("client", [*command, world.address], host="b", pcap=False,
                         env={"NICLESS_PCAP": str(recording)})
    client.wait_file(recording, 1000000, world.bound(20))
    server.signal(signal.SIGKILL)
    client.expect_end(world.bound(20), FAILS, (r"Failed status 12",))


def killed_connected_peer(world):
    """The same under rdma_cm: the client is told DISCONNECTED, long before its requests have used up their retries."""
    port = world.free_port()
    server = world.start("server", ["rping", "-s", "-a", world.address, "-p", port], pcap=False)
    server.wait_port("udp", port, world.bound(10))
    client = world.start("client", ["rping", "-c", "-v", "-a", world.address, "-p", port], host="b", pcap=False)
    client.wait_output(r"ping data: rdma-ping-100: ", world.bound(20))
    server.signal(signal.SIGKILL)
    client.expect_end(world.bound(20), ANY, (r"client DISCONNECT EVENT",))


def second_client_after_kill(world):
    """A client that is killed does a persistent server no harm: the next one is served."""
    port = world.free_port()
    server = world.start("server", ["rping", "-s", "-P", "-a", world.address, "-p", port], pcap=False)
    server.wait_port("udp", port, world.bound(10))
    first = world.start("first", ["rping", "-c", "-v", "-a", world.address, "-p", port], host="b", pcap=False)
    first.wait_output(r"ping data: rdma-ping-100: ", world.bound(20))
    first.signal(signal.SIGKILL)
    world.run("second", ["rping", "-c", "-v", "-C", 10, "-a", world.address, "-p", port], host="b", pcap=False,
              prints=(r"ping data: rdma-ping-9: ",))
    server.expect_running()


def garbage_is_dropped(world):
    """Whatever is thrown at the listener's port and at the connection's: nothing is said, and the next client is served."""
    port = world.free_port()
    server = world.start("server", ["rping", "-s", "-P", "-a", "127.0.0.1", "-p", port], pcap=False)
    server.wait_port("udp", port, world.bound(10))
    chance = random.Random(7)
    client = world.start("first", ["rping", "-c", "-v", "-a", "127.0.0.1", "-p", port], pcap=False)
    client.wait_output(r"ping data: rdma-ping-10: ", world.bound(20))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as thrower:
        for target in [port, *ports_of(server), *ports_of(client)]:
            for _ in range(500):
                size = chance.choice((0, 1, 11, 12, 16, 32, 280, 300, 2000))
                opcode = chance.choice((0x04, 0x0a, 0x0c, 0x11, 0x64, chance.randrange(256)))
                thrower.sendto(bytes([opcode]) + chance.randbytes(size), ("127.0.0.1", target))
    so_far = len(re.findall("ping data: ", client.text))
    client.wait_output(rf"ping data: rdma-ping-{so_far + 10}: ", world.bound(20))
    client.signal(signal.SIGKILL)
    world.run("second", ["rping", "-c", "-v", "-C", 10, "-a", "127.0.0.1", "-p", port], pcap=False,
              prints=(r"ping data: rdma-ping-9: ",))
    server.expect_running()
    said = [line for process in world.processes for line in process.text.splitlines() if line.startswith("nicless:")]
    if said:
        raise Failure(f"garbage was worth a sentence: {said[0]}")


# ---------------------------------------------------------------- the launcher


def launcher_unknown_option(world):
    world.run("run", [world.options.launcher, "run", "--no-such-option", "--", "true"], launch="bare", status=FAILS,
              prints=(r"^nicless: .*--no-such-option",))


def launcher_program_not_found(world):
    world.run("run", [world.options.launcher, "run", "--", "no-such-program"], launch="bare", status=127,
              prints=(r"^nicless: .*no-such-program",))


def launcher_no_program(world):
    world.run("run", [world.options.launcher, "run", "--"], launch="bare", status=FAILS, prints=(r"^nicless: ",))


def missing_interface(world):
    """A device on an interface that is not there: the interface is named, and nothing is listed."""
    world.run("ibv_devices", ["ibv_devices"], env={"NICLESS_DEVICES": "a=nosuchif0"}, status=FAILS, pcap=False,
              prints=(r"^nicless: .*nosuchif0",))
    world.run("devices", [world.options.launcher, "devices"], launch="bare", env={"NICLESS_DEVICES": "a=nosuchif0"},
              status=FAILS, prints=(r"^nicless: .*nosuchif0",))


def launcher_devices(world):
    world.run("devices", [world.options.launcher, "devices"], launch="bare", prints=(r"nicless0", r"127\.0\.0\.1"))


def launcher_keeps_exit_status(world):
    world.run("sh", ["sh", "-c", "exit 43"], status=43, pcap=False)


def child_programs_are_silent(world):
    """The preload enters sh and sed too: they have to print what they print without it, and nothing else."""
    text = world.run("sh", ["sh", "-c", "echo one | sed s/one/two/"], pcap=False)
    if text.strip() != "two":
        raise Failure(f"sh and sed under the launcher printed {text!r}")


BOTH_WORLDS = (ibv_devices, ibv_devinfo, ibv_devinfo_options, ibv_asyncwatch, recvv, pingpong_ex, no_listener, port_in_use, killed_peer, killed_connected_peer,
               second_client_after_kill)
LOOPBACK_ONLY = (garbage_is_dropped, devices_by_library_path, launcher_unknown_option, launcher_program_not_found, launcher_no_program,
                 missing_interface, launcher_devices, launcher_keeps_exit_status, child_programs_are_silent)


def table(world):
    cases = BOTH_WORLDS + (LOOPBACK_ONLY if world.name == "loopback" else ())
    return [(case.__name__.replace("_", " "), case) for case in cases]

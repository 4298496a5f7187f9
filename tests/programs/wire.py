# SPDX-License-Identifier: MIT
"""Our own packets, recorded with --pcap and read by tshark: RoCEv2, nothing malformed, and the exchange that the Linux
kernel's Soft-RoCE makes of the same programs.

golden/*.txt are captures of Soft-RoCE as text, one line a packet. What is compared: the connection manager's opening
messages, and for each queue pair the operations that arrive at it, in order. Acknowledgements are not counted (when
they are coalesced is each implementation's choice), nor is what is sent again (a busy machine answers late and is asked
once more). Who disconnects first is not compared either, and a program that ends at once does not see the answer to its
DREQ; that there was one is.
"""
import pathlib
import re
import shutil
import subprocess

from harness import Failure, Skip
from single import gid_indexes

HERE = pathlib.Path(__file__).resolve().parent

OPCODES = {0x00: "RC_SEND_FIRST", 0x01: "RC_SEND_MIDDLE", 0x02: "RC_SEND_LAST", 0x04: "RC_SEND_ONLY",
           0x06: "RC_WRITE_FIRST", 0x07: "RC_WRITE_MIDDLE", 0x08: "RC_WRITE_LAST", 0x0a: "RC_WRITE_ONLY",
           0x0c: "RC_READ_REQ", 0x0d: "RC_READ_RESP_FIRST", 0x0e: "RC_READ_RESP_MIDDLE", 0x0f: "RC_READ_RESP_LAST",
           0x10: "RC_READ_RESP_ONLY", 0x11: "RC_ACK", 0x64: "UD_SEND_ONLY"}
CM_MESSAGES = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x14: "RTU", 0x15: "DREQ", 0x16: "DREP"}

# Dissectors that take small RDMA payloads for their own protocols, by guessing.
GUESSERS = ("rpcordma", "smb_direct", "smc", "nvme-rdma", "lnet", "iser", "fcoib", "infiniband_sdp", "ethertype",
            "infiniband.eoib")
FIELDS = ("frame.number", "frame.protocols", "_ws.malformed", "udp.dstport", "infiniband.bth.opcode",
          "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.mad.attributeid")


def read_capture(path, fields=FIELDS):
    """The packets of a capture as tshark reads them: one dict of fields each."""
    if not shutil.which("tshark"):
        raise Skip("tshark is not installed")
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    for guesser in GUESSERS:
        command += ["--disable-protocol", guesser]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"tshark cannot read {path.name}: {done.stderr.strip()}")
    return [dict(zip(fields, line.split("|"))) for line in done.stdout.splitlines()]


def check_is_rocev2(packets, name):
    if not packets:
        raise Failure(f"{name} holds no packet")
    for packet in packets:
        number = packet["frame.number"]
        if packet["_ws.malformed"]:
            raise Failure(f"{name} packet {number} is malformed: {packet['_ws.malformed']}")
        if "infiniband" not in packet["frame.protocols"] or packet["udp.dstport"] != "4791":
            raise Failure(f"{name} packet {number} is not RoCEv2 to tshark: {packet['frame.protocols']}, "
                          f"UDP port {packet['udp.dstport']}")


def summary_of_capture(packets):
    events = {}  # each once, in order
    for packet in packets:
        opcode = int(packet["infiniband.bth.opcode"])
        if packet["infiniband.mad.attributeid"]:
            event = ("CM", CM_MESSAGES.get(int(packet["infiniband.mad.attributeid"], 0), "?"))
            events.setdefault(event, event)
        else:
            event = (packet["infiniband.bth.destqp"], OPCODES.get(opcode, hex(opcode)))
            events.setdefault((*event, packet["infiniband.bth.psn"]), event)
    return summary(list(events.values()))


def summary_of_golden(name):
    events = []
    for line in (HERE / "golden" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        operation, qpn, rest = re.search(r"\| (\w+) +qp=(\w+) (.*)", line).groups()
        message = re.search(r" CM (\w+) ", rest)
        events.append(("CM", message.group(1)) if message else (qpn, operation))
    return summary(events)


def summary(events):
    """What is comparable: queue pairs have no names, but an order of appearance."""
    opening = [what for to, what in events if to == "CM" and what in ("REQ", "MRA", "REP", "RTU", "REJ")]
    queue_pairs = list(dict.fromkeys(to for to, _ in events if to != "CM"))
    operations = [[what for to, what in events if to == qpn and what != "RC_ACK"] for qpn in queue_pairs]
    closing = ("CM", "DREQ") in events
    return {"opening": opening, "operations": operations, "is disconnected": closing}


def run_recorded(world, server, client, ready="udp"):
    if not world.options.pcap:
        raise Skip("recording is off")
    port = world.free_port()
    served = world.start("server", [server[0], "-p", port, *server[1:]])
    served.wait_port(ready, port, world.bound(10))
    world.run("client", [client[0], "-p", port, *client[1:]], host="b")
    served.wait_end(world.bound(10))
    captures = {role: read_capture(world.folder / f"{role}.pcapng") for role in ("server", "client")}
    for role, packets in captures.items():
        check_is_rocev2(packets, f"{role}.pcapng")
    return captures


def check_golden(world, golden, server, client, ready="udp"):
    wanted = summary_of_golden(golden)
    for role, packets in run_recorded(world, server, client, ready).items():
        got = summary_of_capture(packets)
        if got != wanted:
            raise Failure(f"{role}.pcapng is not the exchange of Soft-RoCE:\n    ours:  {got}\n    golden: {wanted}")


def rping_as_kernel(world):
    both = ["-a", world.address, "-C", "2", "-v"]
    check_golden(world, "rping-C2", ["rping", "-s", *both], ["rping", "-c", *both])


def rdma_client_as_kernel(world):
    check_golden(world, "rdma_server_client", ["rdma_server"], ["rdma_client", "-s", world.address])


def pingpong_as_kernel(world):
    command = ["ibv_rc_pingpong", "-g", world.once(gid_indexes)[0], "-n", "3", "-s", "2500"]
    check_golden(world, "ibv_rc_pingpong", command, [*command, world.address], "tcp")


def ucmatose_recorded(world):
    run_recorded(world, ["ucmatose", "-C", "2", "-S", "2500"],
                 ["ucmatose", "-s", world.address, "-C", "2", "-S", "2500"])


def tos_in_every_packet(world):
    """What rdma_set_option(RDMA_OPTION_ID_TOS) asks for, at the end that accepts as well, of management datagrams too."""
    run_recorded(world, ["ucmatose", "-C", "2", "-S", "2500", "-t", "96"],
                 ["ucmatose", "-s", world.address, "-C", "2", "-S", "2500", "-t", "96"])
    for role in ("server", "client"):
        packets = read_capture(world.folder / f"{role}.pcapng", ("frame.number", "frame.packet_flags_direction", "ip.dsfield"))
        sent = [packet for packet in packets if int(packet["frame.packet_flags_direction"], 0) == 2]
        unmarked = [packet["frame.number"] for packet in sent if int(packet["ip.dsfield"], 0) != 96]
        if not sent or unmarked:
            raise Failure(f"{role}.pcapng: of {len(sent)} packets sent, these have another TOS than 96: {unmarked}")


def table(world):
    del world
    return [("tshark reads rping -C 2 as the kernel's exchange", rping_as_kernel),
            ("tshark reads rdma_client as the kernel's exchange", rdma_client_as_kernel),
            ("tshark reads ibv_rc_pingpong as the kernel's exchange", pingpong_as_kernel),
            ("tshark reads ucmatose as RoCEv2", ucmatose_recorded),
            ("tshark reads the TOS of ucmatose -t in every packet", tos_in_every_packet)]

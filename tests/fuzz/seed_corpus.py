#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the seeds of fuzzers from the golden packets.

    tests/fuzz/seed_corpus.py GOLDEN_FOLDER GOLDEN_TO_PCAPNG CORPUS_FOLDER

decode_packet: the shortest packet of each opcode, syndrome and CM message, the same for the services that have no
capture, each CM message alone (LAP and APR have none, and are made of a DREQ), and small capture files.

hostile_frames and hostile_mads: each capture as a script of their input (see there): receives and sends are posted, or
connections begun, and then what was captured arrives, with the PSN and keys, or the connection's ids, of the fuzzer's
world.
"""
import pathlib
import struct
import subprocess
import sys

SERVICES = {"uc": 1, "ud": 3, "xrc": 5}  # opcode >> 5; 0 is RC
RESPONSES = range(0x0D, 0x13)  # read responses, ACK, atomic ACK: without XRCETH
WITH_KEYS = {0x06, 0x0A, 0x0B, 0x0C, 0x13, 0x14}  # RETH or AtomicETH
HAS_OP = {"uc": range(0, 0x0C), "ud": range(4, 6), "xrc": [*range(0, 0x15), 0x16, 0x17]}
ICRC_BYTES = 4


def packets(path):
    """Of one capture: its text and bytes, ICRC included."""
    lines = path.read_text().splitlines()
    return [(words.split(), bytes.fromhex(text)) for words, text in zip(lines[::3], lines[2::3])]


def as_service(frame, service):
    """An RC packet as one of another service: the opcode, and DETH or XRCETH where it has one."""
    op = frame[0] & 0x1F
    extra = b""
    if service == "ud":
        extra = bytes.fromhex("1111111100000012")
    elif service == "xrc" and op not in RESPONSES:
        extra = bytes.fromhex("0000005a")
    return bytes([SERVICES[service] << 5 | op]) + frame[1:12] + extra + frame[12:]


def decode_seeds(golden):
    seeds = {}
    for path in golden:
        for parts, frame in packets(path):
            name = parts[1]
            name += "".join(f"_{word[-2:]}" for word in parts if word.startswith("aeth[syn="))
            name += f"_{parts[parts.index('CM') + 1]}" if "CM" in parts else ""
            if name not in seeds or len(frame) < len(seeds[name]):
                seeds[name] = frame
    for name, frame in list(seeds.items()):
        for service, ops in HAS_OP.items():
            other = name.replace("RC_", service.upper() + "_", 1)
            if name.startswith("RC_") and frame[0] & 0x1F in ops and other not in seeds:
                seeds[other] = as_service(frame, service)
    return seeds


def mad_of(frame):
    return frame[20:276] if len(frame) == 20 + 256 + ICRC_BYTES else None


def mad_seeds(seeds, golden):
    mads = {name.split("SEND_ONLY_")[1].lower(): mad_of(frame) for name, frame in seeds.items() if "SEND_ONLY_" in name}
    for name, attribute in (("lap", 0x19), ("apr", 0x1A)):
        mads[name] = mads["dreq"][:17] + bytes([attribute]) + mads["dreq"][18:]
    ipv6 = next(path for path in golden if path.stem == "rping-C2-ipv6")
    mads["req_ipv6"] = next(mad_of(frame) for parts, frame in packets(ipv6) if "CM" in parts)
    return {name: mad for name, mad in mads.items() if mad}


def pcap_of(datagram):
    """A capture file of the old kind with one packet over IPv4."""
    size = len(datagram)
    udp = struct.pack(">HHHH", 55410, 4791, 8 + size, 0) + datagram
    addresses = bytes([10, 77, 0, 2, 10, 77, 0, 1])
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0) + addresses + udp
    frame = bytes(12) + b"\x08\0" + ip
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return header + struct.pack("<IIII", 1, 2, len(frame), len(frame)) + frame


def write_decode_seeds(golden, writer, out):
    out.mkdir(parents=True, exist_ok=True)
    seeds = decode_seeds(golden)
    for name, frame in seeds.items():
        (out / name.lower()).write_bytes(frame)
    for name, mad in mad_seeds(seeds, golden).items():
        (out / f"mad_{name}").write_bytes(mad)
    (out / "capture_old").write_bytes(pcap_of(seeds["RC_ACK_1f"]))
    subprocess.run([writer, out / "capture", "rej-no-listener", "sidr-no-listener"], check=True)


# The script of hostile_frames: one byte says what (times two, plus the host), its arguments follow.
INJECT, POST_SEND, POST_RECV, CARRY, TAKE, WAIT = 0, 4, 6, 8, 10, 14
BORROW_QPN, BORROW_PSN, BORROW_RESPONSE_PSN, BORROW_KEYS = 0x08, 0x10, 0x20, 0x40
SLOT = {0: 0, 1: 1, 3: 2}  # service -> queue pair
GROUP_SLOT, GSI_SLOT, XRC_INITIATOR_SLOT, XRC_TARGET_SLOT = 6, 7, 3, 4
QPN_SLOTS = {1: GSI_SLOT, 0xFFFFFF: GROUP_SLOT}
FROM_PEER, TO_GROUP = 0, 200
SEND, READ, FETCH_ADD = 0, 4, 6  # of its opcodes
FRAMES_MAX, BYTES_MAX = 14, 3000  # of one seed


def inject(frame, nth):
    op, service = frame[0] & 0x1F, frame[0] >> 5
    is_response = op in RESPONSES
    if service == 5:
        slot = XRC_INITIATOR_SLOT if is_response else XRC_TARGET_SLOT
    else:
        slot = QPN_SLOTS.get(int.from_bytes(frame[5:8], "big"), SLOT[service])
    frame = bytearray(frame[:-ICRC_BYTES])
    frame[11] = 0xFF if is_response else 0  # the last one sent; the next one expected
    flags = slot | BORROW_QPN | (BORROW_RESPONSE_PSN if is_response else BORROW_PSN)
    if op in WITH_KEYS:
        at = 16 if service == 5 else 12
        frame[at : at + 8] = (nth % 7 == 6).to_bytes(8, "big")  # the open buffer, now and then the one to be read only
    if op in WITH_KEYS or service == 3 and slot != GSI_SLOT:
        flags |= BORROW_KEYS
    source = TO_GROUP if slot == GROUP_SLOT else FROM_PEER
    return bytes([INJECT, flags, source]) + len(frame).to_bytes(2, "little") + bytes(frame)


def before(frame, slot):
    """What has to have happened for a response to be one: a request, posted and sent."""
    op = frame[0] & 0x1F
    if op not in RESPONSES:
        return b""
    opcode = READ if op < 0x11 else SEND if op == 0x11 else FETCH_ADD
    return bytes([POST_SEND, slot, 0, 0x20, opcode, TAKE])


def interesting(path):
    """The first packet of each kind, in their order, and what follows it."""
    seen, chosen, size = set(), [], 0
    for parts, frame in packets(path):
        kind = (parts[1], next((word for word in parts if word.startswith("aeth[syn=")), ""), len(chosen) % 3)
        if kind in seen or size + len(frame) > BYTES_MAX or len(chosen) >= FRAMES_MAX:
            continue
        seen.add(kind)
        chosen.append(frame)
        size += len(frame)
    return chosen


def script(frames):
    mtu_256 = max(len(frame) for frame in frames) <= 256 + 40
    out = bytes([1 if mtu_256 else 0])
    for slot in range(4):
        out += bytes([POST_RECV, slot + 0x10, 0x3A, 0x3F]) * 2
    for nth, frame in enumerate(frames):
        is_xrc = frame[0] >> 5 == 5
        out += before(frame, XRC_INITIATOR_SLOT if is_xrc else 0) + inject(frame, nth)
        if nth % 4 == 3:
            out += bytes([CARRY, WAIT, 1])
    return out + bytes([CARRY])


def write_frame_seeds(golden, out):
    out.mkdir(parents=True, exist_ok=True)
    for path in golden:
        frames = interesting(path)
        (out / f"golden_{path.stem.lower()}").write_bytes(script(frames))
        if path.stem in ("rxt-ops", "nak-badkey-64", "rnr-late-recv", "rxt-mw-sendinv"):
            as_xrc = [as_service(frame, "xrc") for frame in frames if frame[0] >> 5 == 0]
            (out / f"golden_xrc_{path.stem.lower()}").write_bytes(script(as_xrc))


# The script of hostile_mads.
MAD_INJECT, MAD_CONNECT, MAD_WISH, MAD_DELIVER, MAD_WAIT, MAD_RESOLVE = 0, 2, 4, 8, 16, 18
WHOLE_MAD, BORROW_LOCAL, BORROW_REMOTE = 1, 2, 4
ACCEPT, ESTABLISH, DISCONNECT, DESTROY = 0, 3, 5, 6
SIDR_ASK, SIDR_ACCEPT = 0, 3
ATTRIBUTE_AT, REQ, REP, RTU, SIDR_REQ, SIDR_REP = 16, 0x10, 0x13, 0x14, 0x17, 0x18
FIRST_ID = 0
MADS_MAX = 10  # of one seed


def inject_mad(mad):
    """To host 0; its ids are those of the first connection there, where it is of one."""
    if mad[ATTRIBUTE_AT + 1] in (REQ, SIDR_REQ, SIDR_REP):
        return bytes([MAD_INJECT, WHOLE_MAD, 0]) + mad
    return bytes([MAD_INJECT, WHOLE_MAD | BORROW_LOCAL | BORROW_REMOTE, 0]) + mad + bytes([FIRST_ID])


def mads_of(path):
    mads = [mad_of(frame) for parts, frame in packets(path) if "CM" in parts]
    return [mad for mad in mads if mad][:MADS_MAX]


def mad_script(mads, connects):
    out = bytes([MAD_CONNECT, MAD_DELIVER]) if connects else b""
    if any(mad[ATTRIBUTE_AT + 1] in (SIDR_REQ, SIDR_REP) for mad in mads):
        out += bytes([MAD_RESOLVE, SIDR_ASK, MAD_DELIVER, MAD_RESOLVE + 1, SIDR_ACCEPT, MAD_DELIVER])
    for mad in mads:
        attribute = int.from_bytes(mad[ATTRIBUTE_AT : ATTRIBUTE_AT + 2], "big")
        out += inject_mad(mad)
        if attribute == REQ:
            out += bytes([MAD_WISH, ACCEPT, FIRST_ID])
        elif attribute == SIDR_REQ:
            out += bytes([MAD_RESOLVE, SIDR_ACCEPT])
        elif attribute == REP:
            out += bytes([MAD_WISH, ESTABLISH, FIRST_ID])
        elif attribute == RTU:
            out += bytes([MAD_WAIT, 1, MAD_WISH, DISCONNECT, FIRST_ID])
    return out + bytes([MAD_DELIVER, MAD_WISH, DESTROY, FIRST_ID])


def write_mad_seeds(golden, out):
    out.mkdir(parents=True, exist_ok=True)
    seen = set()
    for path in golden:
        mads = mads_of(path)
        kinds = tuple(mad[ATTRIBUTE_AT + 1] for mad in mads)
        if not mads or kinds in seen:
            continue
        seen.add(kinds)
        for side, connects in (("active", True), ("passive", False)):
            (out / f"golden_{side}_{path.stem.lower()}").write_bytes(mad_script(mads, connects))


def main(golden, writer, out):
    captures = sorted(golden.glob("*.hex"))
    write_decode_seeds(captures, writer, out / "decode_packet")
    write_frame_seeds(captures, out / "hostile_frames")
    write_mad_seeds(captures, out / "hostile_mads")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))

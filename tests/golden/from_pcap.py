#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns a capture of RoCE v2 traffic and its listing into the text that the golden tests read (README.md has the format).

    tests/golden/from_pcap.py CAPTURE.pcap LISTING.txt > NAME.hex

The listing says in words what each packet holds: one line a packet, "NUMBER TIME ADDRESSES | WORDS | ICRC". It was made by
another program than ours, so that the tests compare two independent readings of the same bytes. What is not RoCE v2
(ARP, ICMP, IGMP) is left out.
"""
import struct
import sys

ROCE_UDP_PORT = 4791


def frames(pcap):
    order = "<" if pcap[:4] == b"\xd4\xc3\xb2\xa1" else ">"
    at, number = 24, 0
    while at + 16 <= len(pcap):
        captured_bytes = struct.unpack(order + "8xI4x", pcap[at:at + 16])[0]
        number += 1
        yield number, pcap[at + 16:at + 16 + captured_bytes]
        at += 16 + captured_bytes


def packet_line(frame):
    """One packet as text, or None if it is not RoCE v2."""
    ether_type, ip = struct.unpack("!H", frame[12:14])[0], frame[14:]
    if ether_type == 0x0800 and ip[9] == 17:
        ip_bytes, total = (ip[0] & 15) * 4, struct.unpack("!H", ip[2:4])[0]
        source, destination = ip[12:16], ip[16:20]
        ip_id, traffic_class, hop_limit = struct.unpack("!H", ip[4:6])[0], ip[1], ip[8]
    elif ether_type == 0x86dd and ip[6] == 17:
        ip_bytes, total = 40, 40 + struct.unpack("!H", ip[4:6])[0]
        source, destination = ip[8:24], ip[24:40]
        ip_id, traffic_class, hop_limit = 0, (ip[0] & 15) << 4 | ip[1] >> 4, ip[7]
    else:
        return None
    source_port, destination_port = struct.unpack("!HH", ip[ip_bytes:ip_bytes + 4])
    if destination_port != ROCE_UDP_PORT:
        return None
    addresses = f"{as_gid(source)} {source_port} {as_gid(destination)} {destination_port}"
    return f"{addresses} {ip_id:04x} {traffic_class:02x} {hop_limit:02x}\n{ip[ip_bytes + 8:total].hex()}"


def as_gid(address):
    return (bytes(10) + b"\xff\xff" + address if len(address) == 4 else address).hex()


def main(pcap_path, listing_path):
    words = {}
    with open(listing_path, encoding="utf-8") as listing:
        for line in listing:
            parts = line.split(" | ")
            if len(parts) == 3:
                words[int(parts[0].split()[0])] = " ".join(parts[1].split())
    with open(pcap_path, "rb") as pcap:
        for number, frame in frames(pcap.read()):
            text = packet_line(frame)
            if text:
                print(f"# {words[number]}\n{text}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: tshark reads a trace of ours as RoCE v2 with no options: each packet with its opcode, none malformed.
Method: golden packets of many kinds, written by golden_to_pcapng, are read by tshark; the opcodes must be the golden
ones, and the true ports must stand in the comments. Without tshark: skipped (exit status 77).

    tshark_test.py GOLDEN_TO_PCAPNG GOLDEN_FOLDER
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

NAMES = ["rping-C2", "rping-C2-ipv6", "rxt-ops", "rxt-mw-sendinv", "ib_atomic_lat-cas", "ibv_uc_pingpong", "udaddy",
         "rnr-late-recv", "nak-badkey-64", "rej-no-listener"]

# tshark guesses at what a small payload may be, and calls it malformed when the guess is wrong.
NO_GUESSING = [word for heuristic in ("eth_over_ib", "mellanox_eoib") for word in ("--disable-heuristic", heuristic)] + [
    word for protocol in ("rpcordma", "smb_direct", "smc", "nvme-rdma", "lnet", "iser", "fcoib", "infiniband_sdp")
    for word in ("--disable-protocol", protocol)]
CHECKSUMS = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]


def golden_lines(folder):
    for name in NAMES:
        lines = (pathlib.Path(folder) / f"{name}.hex").read_text().splitlines()
        yield from zip(lines[1::3], lines[2::3])


def tshark(trace, options, fields):
    command = ["tshark", "-n", "-r", trace, *options, "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit status {done.returncode}\n{done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def check(what, found, expected):
    for number, (one, other) in enumerate(zip(found, expected), 1):
        if one != other:
            sys.exit(f"packet {number}: {what}: tshark says {one!r}, expected {other!r}")
    if len(found) != len(expected):
        sys.exit(f"{what}: tshark sees {len(found)} packets, expected {len(expected)}")


def main(writer, folder):
    if not shutil.which("tshark"):
        print("skipped: there is no tshark here (Debian package: tshark)")
        sys.exit(77)
    golden = list(golden_lines(folder))
    with tempfile.TemporaryDirectory() as scratch:
        trace = str(pathlib.Path(scratch) / "golden.pcapng")
        subprocess.run([writer, trace, *NAMES], check=True, timeout=60)
        opcodes = [str(int(text[:2], 16)) for _, text in golden]
        check("opcode, without options", [row[0] for row in tshark(trace, [], ["infiniband.bth.opcode"])], opcodes)
        rows = tshark(trace, NO_GUESSING + CHECKSUMS,
                      ["infiniband.bth.opcode", "frame.protocols", "frame.comment", "udp.dstport", "_ws.malformed",
                       "_ws.expert.severity", "ip.checksum.status", "udp.checksum.status"])
    check("opcode", [row[0] for row in rows], opcodes)
    check("protocols", ["infiniband" in row[1] for row in rows], [True] * len(golden))
    check("comment", [row[2] for row in rows], [f"udp {where.split()[1]}>40002" for where, _ in golden])
    check("port", [row[3] for row in rows], ["4791"] * len(golden))
    check("malformed", [row[4] for row in rows], [""] * len(golden))
    check("UDP checksum", [row[7] for row in rows], ["1"] * len(golden))
    check("IP checksum", [row[6] for row in rows if row[6]], ["1"] * sum(1 for row in rows if row[6]))
    print(f"tshark reads {len(golden)} packets as they are")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the seeds of the fuzzer decode_packet from the golden packets: the shortest of each opcode, syndrome and CM
message, each CM message alone, and a small capture.

    tests/fuzz/seed_corpus.py GOLDEN_FOLDER GOLDEN_TO_PCAPNG OUT_FOLDER
"""
import pathlib
import subprocess
import sys


def main(golden, writer, out):
    out.mkdir(parents=True, exist_ok=True)
    seeds = {}
    for path in sorted(golden.glob("*.hex")):
        lines = path.read_text().splitlines()
        for words, text in zip(lines[::3], lines[2::3]):
            parts = words.split()
            name = parts[1]
            name += "".join(f"_{word[-2:]}" for word in parts if word.startswith("aeth[syn="))
            name += f"_{parts[parts.index('CM') + 1]}" if "CM" in parts else ""
            if name not in seeds or len(text) < len(seeds[name]):
                seeds[name] = text
    for name, text in seeds.items():
        (out / name.lower()).write_bytes(bytes.fromhex(text))
        if "SEND_ONLY_" in name and len(text) == 2 * (20 + 256 + 4):
            (out / ("mad_" + name.split("SEND_ONLY_")[1]).lower()).write_bytes(bytes.fromhex(text)[20:276])
    subprocess.run([writer, out / "capture", "rej-no-listener", "sidr-no-listener"], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))

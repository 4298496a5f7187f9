#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: nicless-trace prints one line a packet, and says what is wrong with a file that it cannot read.
Method: a trace of golden packets, whole, cut and damaged; and files that are none.

    trace_test.py NICLESS_TRACE GOLDEN_TO_PCAPNG GOLDEN_FOLDER
"""
import pathlib
import subprocess
import sys
import tempfile

NAME = "rping-C2"
WHOLE_START = "    4  0.000003000 out 10.77.0.2:58285>10.77.0.1:40002 RC_SEND_ONLY qp=00001e psn=9c37bb a=1 se=0 pad=0 len=16"


class Program:
    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments, stdin=b""):
        done = subprocess.run([self.path, *arguments], input=stdin, capture_output=True, timeout=60)
        return done.returncode, done.stdout.decode().splitlines(), done.stderr.decode()


def expect(what, is_true, shown):
    if not is_true:
        sys.exit(f"{what}: {shown!r}")


def main(trace_path, writer, golden_folder):
    trace = Program(trace_path)
    opcodes = [line.split()[1] for line in (pathlib.Path(golden_folder) / f"{NAME}.hex").read_text().splitlines()[::3]]
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "golden.pcapng"
        subprocess.run([writer, path, NAME], check=True, timeout=60)
        capture = path.read_bytes()

        status, lines, errors = trace(path)
        expect("a whole capture: status and stderr", (status, errors) == (0, ""), (status, errors))
        expect("opcodes", [line.split()[4] for line in lines] == opcodes, lines)
        expect("a line", " ".join(lines[3].split()) == " ".join(WHOLE_START.split()), lines[3])
        expect("no bad ICRC", not any("BAD-ICRC" in line for line in lines), lines)

        expect("the same from stdin", trace("-", stdin=capture)[1] == lines, trace("-", stdin=capture))

        path.write_bytes(capture[:-10])
        status, cut_lines, errors = trace(path)
        expect("a cut capture: all whole packets", (status, cut_lines) == (0, lines[:-1]), cut_lines)
        expect("a cut capture: says so", "ends in the middle of a packet" in errors, errors)

        damaged = bytearray(capture)
        damaged[capture.index(bytes.fromhex("809c37bb")) + 3] ^= 1  # a PSN
        path.write_bytes(damaged)
        expect("a damaged packet", [line.endswith(" BAD-ICRC") for line in trace(path)[1]].count(True) == 1, trace(path))

        path.write_text("this is a text, and it is longer than the header of a capture\n")
        status, lines, errors = trace(path)
        expect("no capture", (status, lines) == (1, []) and "is no capture" in errors, errors)
        status, _, errors = trace(pathlib.Path(scratch) / "missing")
        expect("no file", status == 1 and "No such file" in errors, errors)

    expect("no arguments", trace()[0] == 2 and "usage" in trace()[2], trace())
    expect("an unknown option", trace("--colour")[0] == 2, trace("--colour"))
    expect("help", trace("--help")[0] == 0 and "usage" in trace("--help")[1][0], trace("--help"))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

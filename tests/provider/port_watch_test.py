#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: a program hears when its port goes down and when it comes back, as with hardware whose link is pulled.

Method: ibv_asyncwatch in a network namespace of the test's own, whose loopback interface is set down and up.

    port_watch_test.py LAUNCHER
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LAUNCHER = None
UNSHARE = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-r", "-n")
# Each step waits until the program has printed what it must, or until 20 s have gone.
SCRIPT = """
set -e
ip link set lo up
"$LAUNCHER" run -- ibv_asyncwatch >"$OUT" &
program=$!
trap 'kill $program' EXIT
printed() {
  tries=0
  until grep -q "$1" "$OUT"; do
    tries=$((tries + 1))
    [ $tries -lt 2000 ]
    sleep 0.01
  done
}
printed 'async event FD'
ip link set lo down
printed PORT_ERR
ip link set lo up
printed PORT_ACTIVE
"""


class PortWatch(unittest.TestCase):
    def test_a_port_goes_down_and_comes_back(self):
        probe = subprocess.run([*UNSHARE, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            self.skipTest(f"no network namespaces here: {probe.stderr.strip()}")
        if not shutil.which("ibv_asyncwatch"):
            self.skipTest("no ibv_asyncwatch here (package ibverbs-utils)")
        with tempfile.NamedTemporaryFile("r") as out:
            done = subprocess.run([*UNSHARE, "sh", "-c", SCRIPT], env={**os.environ, "LAUNCHER": LAUNCHER, "OUT": out.name},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False)
            printed = re.sub(r"FD \d+", "FD n", out.read())
        self.assertEqual(printed, "nicless0: async event FD n\n"
                                  "  event_type IBV_EVENT_PORT_ERR (10), port 1\n"
                                  "  event_type IBV_EVENT_PORT_ACTIVE (9), port 1\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    LAUNCHER = sys.argv.pop(1)
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: rdma_resolve_addr finds a host that is there, and says within its timeout that there is none.

Method: rping, whose timeout is two seconds, in a network namespace of the test's own: a link on which nobody answers,
and neighbours that are written into the kernel's table. That the address was resolved is seen by what comes next.

    hosts_test.py LAUNCHER
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

LAUNCHER = None
UNSHARE = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-r", "-n")
LINK = """
set -e
ip link set lo up
ip link add veth0 type veth peer name silent
ip link set silent up
ip link set veth0 up
ip addr add 10.78.9.1/24 dev veth0
ip addr add fd78:9::1/64 dev veth0 nodad
"""
NOBODY = LINK + """
"$LAUNCHER" run -- rping -c -d -a "$HOST" -p 7471 -C 1 2>&1
"""
# The connection is nobody's to accept, so rping is ended when the address is resolved.
KNOWN = LINK + """
make_known() { ip neigh replace "$HOST" lladdr 02:00:00:00:00:01 dev veth0 nud permanent; }
if [ "$WHEN" = before ]; then make_known; fi
"$LAUNCHER" run -- stdbuf -oL rping -c -d -a "$HOST" -p 7471 -C 1 >"$OUT" 2>&1 &
program=$!
trap 'kill $program' EXIT
if [ "$WHEN" = meanwhile ]; then
  until ip neigh show dev veth0 | grep -q "^$HOST .*INCOMPLETE"; do sleep 0.01; done
  make_known
fi
tries=0
until grep -q "RDMA_CM_EVENT_ROUTE_RESOLVED" "$OUT"; do
  tries=$((tries + 1))
  [ $tries -lt 2000 ]
  sleep 0.01
done
"""
# The second call comes while the first one looks for the host.
TWICE = LINK + """
"$LAUNCHER" run -- python3 -c '
import ctypes, socket, struct
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
one = ctypes.c_void_p()
assert cm.rdma_create_id(ctypes.c_void_p(cm.rdma_create_event_channel()), ctypes.byref(one), None, 0x106) == 0
there = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 7471) + socket.inet_aton("10.78.9.2") + bytes(8)
assert cm.rdma_resolve_addr(one, None, there, 60000) == 0
assert cm.rdma_resolve_addr(one, None, there, 60000) == -1
print("errno", ctypes.get_errno())
' 2>&1
"""
HOSTS = ("10.78.9.2", "fd78:9::2")


def in_namespace(script, **env):
    return subprocess.run([*UNSHARE, "sh", "-c", script], env={**os.environ, "LAUNCHER": LAUNCHER, **env},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)


class Hosts(unittest.TestCase):
    def setUp(self):
        probe = in_namespace(LINK)
        if probe.returncode != 0:
            self.skipTest(f"no network namespaces with links here: {probe.stderr.strip()}")
        if not shutil.which("rping"):
            self.skipTest("no rping here (package rdmacm-utils)")

    def test_a_host_that_is_not_there_is_an_address_error(self):
        for host in HOSTS:
            with self.subTest(host=host):
                done = in_namespace(NOBODY, HOST=host)
                self.assertIn("cma event RDMA_CM_EVENT_ADDR_ERROR, error -110", done.stdout)
                self.assertIn(f"nicless: rdma_resolve_addr: ADDR_ERROR, no host answers for {host} on the link "
                              "within 2000 ms", done.stdout)
                self.assertNotEqual(done.returncode, 0)

    def test_a_host_is_found_that_is_known_or_comes_up_in_time(self):
        for host in HOSTS:
            for when in ("before", "meanwhile"):
                with self.subTest(host=host, when=when), tempfile.NamedTemporaryFile("r") as out:
                    done = in_namespace(KNOWN, HOST=host, WHEN=when, OUT=out.name)
                    self.assertEqual(done.returncode, 0, done.stderr + out.read())


    def test_an_address_that_is_being_resolved_is_resolved_once(self):
        done = in_namespace(TWICE)
        self.assertIn("errno 22", done.stdout)
        self.assertIn("nicless: rdma_resolve_addr: EINVAL, rdma_resolve_addr is under way: ADDR_RESOLVED or ADDR_ERROR "
                      "has to come first", done.stdout)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    LAUNCHER = sys.argv.pop(1)
    unittest.main()

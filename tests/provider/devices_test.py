#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: on machines with other interfaces than this one, each GID index holds the address that the documentation says,
each device of NICLESS_DEVICES has the addresses of its interfaces, and a machine without any address is no crash.

Method: network namespaces of the test's own, filled with addresses; what `nicless devices` prints there.

    devices_test.py LAUNCHER
"""
import os
import pathlib
import subprocess
import sys
import unittest

LAUNCHER = None
UNSHARE = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-r", "-n")
LO = "ip link set lo up\n"
# v0 and its other end: up, with a carrier, no addresses of their own making.
VETH = """
ip link add v0 type veth peer name v1
for i in v0 v1; do echo 1 >/proc/sys/net/ipv6/conf/$i/addr_gen_mode 2>/dev/null; ip link set $i up; done
"""
ADDRESSES = """
ip addr add 10.9.0.1/24 dev v0
ip addr add 169.254.7.7/16 dev v0
ip addr add fd77::1/64 dev v0 nodad
ip addr add fe80::1/64 dev v0 nodad
"""


def run_in_namespace(setup, **more):
    script = f"set -e\n{setup}\nexec '{LAUNCHER}' devices"
    return subprocess.run([*UNSHARE, "sh", "-c", script], env={**os.environ, **more}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30, check=False)


def gids_of(text):
    """{device: [(index, address, interface)]}"""
    devices, current = {}, None
    for line in text.splitlines():
        words = line.split()
        if line and not line.startswith(" "):
            current = devices.setdefault(line.strip(), [])
        elif words and words[0].isdigit():
            current.append((int(words[0]), words[1], words[-1]))
    return devices


class Environment(unittest.TestCase):
    def said(self, **more):
        done = subprocess.run([LAUNCHER, "devices"], env={**os.environ, **more}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30, check=False)
        return done.returncode, done.stderr

    def test_an_unknown_log_level_is_named_once(self):
        sentence = "nicless: NICLESS_LOG=verbose is no level: none, error, warn, info or debug; warn is taken\n"
        status, text = self.said(NICLESS_LOG="verbose", NICLESS_DEVICES="a=")
        self.assertEqual((status, text.count(sentence)), (1, 1))
        self.assertIn("names an interface, and the name is empty", text)

    def test_an_interface_that_is_not_there_is_named_with_those_that_are(self):
        status, text = self.said(NICLESS_DEVICES="a=nope")
        self.assertEqual(status, 1)
        self.assertIn("ENODEV, NICLESS_DEVICES: there is no interface nope that is up; those that are: lo", text)
        status, text = self.said(NICLESS_DEVICES="a=192.0.2.77")
        self.assertEqual(status, 1)
        self.assertIn("there is no interface with the address 192.0.2.77 that is up; those that are: lo", text)


class Devices(unittest.TestCase):
    def setUp(self):
        probe = subprocess.run([*UNSHARE, "sh", "-c", LO + VETH], capture_output=True, text=True, check=False)
        if probe.returncode != 0:
            self.skipTest(f"no network namespaces here: {probe.stderr.strip()}")

    def devices(self, setup, **more):
        done = run_in_namespace(setup, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_a_machine_with_loopback_only_has_four_entries(self):
        text = self.devices(LO)
        self.assertEqual(gids_of(text), {"nicless0": [(0, "::ffff:127.0.0.1", "lo"), (1, "::1", "lo"),
                                                      (2, "::ffff:127.0.0.1", "lo"), (3, "::ffff:127.0.0.1", "lo")]})
        self.assertIn("MTU 4096", text)

    def test_addresses_others_can_reach_come_first(self):
        text = self.devices(LO + VETH + ADDRESSES)
        self.assertEqual(gids_of(text), {"nicless0": [
            (0, "::ffff:10.9.0.1", "v0"), (1, "fd77::1", "v0"), (2, "::ffff:127.0.0.1", "lo"), (3, "::1", "lo"),
            (4, "::ffff:169.254.7.7", "v0"), (5, "fe80::1", "v0")]})
        self.assertIn("MTU 1024", text)

    def test_each_named_device_has_its_interfaces(self):
        text = self.devices(LO + VETH + ADDRESSES, NICLESS_DEVICES="near=lo,far=v0")
        devices = gids_of(text)
        self.assertEqual(list(devices), ["near", "far"])
        self.assertEqual([g[1:] for g in devices["near"]], [("::ffff:127.0.0.1", "lo"), ("::1", "lo"),
                                                            ("::ffff:127.0.0.1", "lo"), ("::ffff:127.0.0.1", "lo")])
        self.assertEqual([g[1:] for g in devices["far"]], [
            ("::ffff:10.9.0.1", "v0"), ("fd77::1", "v0"), ("::ffff:169.254.7.7", "v0"), ("fe80::1", "v0")])
        self.assertIn("MTU 4096", text)
        self.assertIn("MTU 1024", text)

    def test_without_an_address_the_port_is_down(self):
        text = self.devices("")
        self.assertIn("port 1: down", text)
        self.assertEqual(gids_of(text), {"nicless0": []})

    def test_a_wrong_list_of_devices_is_quoted(self):
        done = run_in_namespace(LO, NICLESS_DEVICES="a=lo,b")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('NICLESS_DEVICES: "b" names no interface', done.stderr)


if __name__ == "__main__":
    LAUNCHER = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main(verbosity=2)

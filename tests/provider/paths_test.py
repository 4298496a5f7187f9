#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: under the launcher every program sees the device where programs look for one: a character device in
/dev/infiniband (UCX) and files in /sys/class/infiniband (Open MPI, hwloc, scripts); any other path is untouched.

Method: ordinary programs (coreutils, Python, sh) under `nicless run`, their answers compared.

    paths_test.py LAUNCHER FOLDER_WITH_THE_LIBRARIES
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LAUNCHER = FOLDER = None
CLASS = "/sys/class/infiniband"


class Paths(unittest.TestCase):
    def setUp(self):
        self.runtime = tempfile.TemporaryDirectory(prefix="nicless-test-")
        self.addCleanup(self.runtime.cleanup)

    def run_under(self, *command, **more):
        env = {**os.environ, "XDG_RUNTIME_DIR": self.runtime.name, **more}
        return subprocess.run([LAUNCHER, "run", "--", *command], env=env, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=30, check=False)

    def python(self, code, **more):
        done = self.run_under("/usr/bin/python3", "-c", code, **more)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.rstrip("\n")

    def test_the_device_node_is_a_character_device_to_all_who_ask(self):
        code = """
import os, stat
n = "/dev/infiniband/uverbs0"
print(stat.S_ISCHR(os.stat(n).st_mode), stat.S_ISCHR(os.lstat(n).st_mode), os.access(n, os.R_OK | os.W_OK),
      stat.S_ISCHR(os.stat("/dev/infiniband/rdma_cm").st_mode), os.path.exists("/dev/infiniband/uverbs1"),
      stat.S_ISCHR(os.fstat(os.open(n, os.O_RDWR)).st_mode))
"""
        self.assertEqual(self.python(code), "True True True True False True")
        self.assertEqual(self.run_under("sh", "-c", "test -c /dev/infiniband/uverbs0").returncode, 0)
        self.assertEqual(self.run_under("stat", "-c", "%F", "/dev/infiniband/uverbs0").stdout,
                         "character special file\n")

    def test_the_class_can_be_listed_and_read(self):
        self.assertEqual(self.run_under("ls", CLASS).stdout, "nicless0\n")
        self.assertEqual(self.run_under("cat", f"{CLASS}/nicless0/ports/1/state").stdout, "4: ACTIVE\n")
        self.assertEqual(self.run_under("cat", "/sys/class/infiniband_verbs/uverbs0/ibdev").stdout, "nicless0\n")
        listed = self.run_under("ls", "-lR", CLASS)
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))

    def test_counters_are_those_of_the_process_that_reads_them(self):
        folder = f"{CLASS}/nicless0/ports/1/hw_counters"
        self.assertIn("rx_icrc_encapsulated\n", self.run_under("ls", folder).stdout)
        self.assertEqual(self.run_under("cat", f"{folder}/rcvd_pkts").stdout, "0\n")
        code = f"""
import ctypes, socket, subprocess
v = ctypes.CDLL("libibverbs.so.1")
for name in ("get_device_list", "open_device", "alloc_pd", "create_cq", "create_qp"):
    getattr(v, "ibv_" + name).restype = ctypes.c_void_p
class Attr(ctypes.Structure):
    _fields_ = [("queues", ctypes.c_void_p * 4), ("cap", ctypes.c_uint32 * 5), ("type", ctypes.c_int), ("all", ctypes.c_int)]
v.ibv_get_device_list.argtypes = [ctypes.c_void_p]
device = ctypes.cast(v.ibv_get_device_list(None), ctypes.POINTER(ctypes.c_void_p))[0]
context = ctypes.c_void_p(v.ibv_open_device(ctypes.c_void_p(device)))
cq = v.ibv_create_cq(context, 4, None, None, 0)
attr = Attr((None, cq, cq, None), (1, 1, 1, 1, 0), 2, 0)
qp = v.ibv_create_qp(ctypes.c_void_p(v.ibv_alloc_pd(context)), ctypes.byref(attr))
qp_num = ctypes.c_uint32.from_address(qp + 52).value
def counted(name):
    with open("{folder}/" + name) as file:
        return int(file.read())
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(2):
    s.sendto(b"x" * 5, ("127.0.0.1", qp_num >> 8))
while counted("rcvd_pkts") < 2:
    pass
print(counted("rcvd_pkts"), counted("rx_truncated"), counted("sent_pkts"),
      subprocess.check_output(["cat", "{folder}/rcvd_pkts"], text=True).strip())
"""
        self.assertEqual(self.python(code), "2 2 0 0")

    def test_the_names_follow_the_devices(self):
        self.assertEqual(self.run_under("ls", CLASS, NICLESS_DEVICES="a=lo,b=lo").stdout, "a\nb\n")
        self.assertEqual(self.run_under("ls", "/dev/infiniband", NICLESS_DEVICES="a=lo,b=lo").stdout,
                         "rdma_cm\nuverbs0\nuverbs1\n")

    def test_verbs_lead_to_the_same_files(self):
        code = """
import ctypes, os
v = ctypes.CDLL("libibverbs.so.1")
v.ibv_get_sysfs_path.restype = ctypes.c_char_p
path = v.ibv_get_sysfs_path().decode()
print(os.listdir(path + "/class/infiniband"), path.startswith(os.environ["XDG_RUNTIME_DIR"]))
"""
        self.assertEqual(self.python(code), "['nicless0'] True")

    def test_what_is_not_there_is_not_there(self):
        for path in (f"{CLASS}/mlx5_0", "/sys/class/infiniband_mad", "/dev/infiniband/umad0"):
            self.assertNotEqual(self.run_under("ls", path).returncode, 0, path)

    def test_other_paths_are_untouched(self):
        code = """
import os
print(os.stat("/dev/null").st_rdev, os.path.exists("/dev/infinibandage"), sorted(os.listdir("/dev"))[:3],
      os.listdir("/sys/class/net") != [], open("/etc/passwd").readline(), os.path.realpath("/proc/self/root"))
"""
        plain = subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(self.python(code), plain.stdout.rstrip("\n"))

    def test_a_failure_has_the_errno_it_has_elsewhere(self):
        code = """
import errno, os
for call in (lambda: os.stat("/nowhere"), lambda: os.stat("/dev/infiniband/none"), lambda: os.listdir("/etc/passwd"),
             lambda: os.open("/sys/class/infiniband/nicless0", os.O_WRONLY), lambda: os.readlink("/etc")):
    try: call()
    except OSError as e: print(errno.errorcode[e.errno])
"""
        self.assertEqual(self.python(code).split(), ["ENOENT", "ENOENT", "ENOTDIR", "EISDIR", "EINVAL"])

    def test_a_child_of_vfork_may_ask(self):
        # subprocess uses vfork, and its child changes the folder before it executes the program.
        code = """
import subprocess
print(subprocess.run(["ls"], cwd="/sys/class/infiniband", stdout=subprocess.PIPE, text=True).stdout.strip())
"""
        self.assertEqual(self.python(code), "nicless0")

    def test_nothing_is_answered_unless_the_launcher_says_so(self):
        env = {**os.environ, "LD_PRELOAD": f"{FOLDER}/libibverbs.so.1:{FOLDER}/libnicless_paths.so"}
        env.pop("NICLESS_PATHS", None)
        if os.path.exists(CLASS):
            self.skipTest("this machine has RDMA devices of its own")
        done = subprocess.run(["ls", CLASS], env=env, capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_an_ordinary_program_makes_no_files(self):
        self.assertEqual(self.run_under("ls", "/etc").returncode, 0)
        self.assertEqual(os.listdir(self.runtime.name), [])


if __name__ == "__main__":
    LAUNCHER, FOLDER = (pathlib.Path(p).absolute() for p in (sys.argv.pop(1), sys.argv.pop(1)))
    unittest.main(verbosity=2)

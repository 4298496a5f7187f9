#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: whatever was linked to rdma-core's libraries loads with ours in their place, and a preload does nothing by itself.

Method: every program of Debian 12 that links them and is installed here starts, with all symbols bound at start; every
library beside them passes `ldd -r`; libraries opened by name are ours; programs that are no RDMA programs at all have
the same descriptors and threads with the preload as without. What is not installed is named and skipped.

    loading_test.py FOLDER_WITH_THE_LIBRARIES
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

FOLDER = None
SYSTEM = pathlib.Path("/usr/lib/x86_64-linux-gnu")
SYSTEM_PYTHON = "/usr/bin/python3"  # pyverbs belongs to the distribution's Python
BROKEN = re.compile(r"symbol lookup error|undefined symbol|version .* not found|cannot be preloaded|not defined in file"
                    r"|no version information")

PROGRAMS = """
    ibv_devices ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong
    ibv_xsrq_pingpong rping ucmatose udaddy mckey cmtime rdma_client rdma_server rdma_xclient rdma_xserver rstream
    riostream rcopy udpong ib_send_bw ib_send_lat ib_read_bw ib_read_lat ib_write_bw ib_write_lat ib_atomic_bw
    ib_atomic_lat raw_ethernet_bw raw_ethernet_lat qperf ucx_info fi_info fi_pingpong fio qemu-system-x86_64 tgtd
    iscsi-ls ceph-osd ibacm ib_acme srp_daemon
""".split()
LIBRARIES = """
    libmlx5.so.1 libmlx4.so.1 libefa.so.1 libmana.so.1 librspreload.so rsocket/librspreload.so
    libibverbs/libmlx5-rdmav34.so libibverbs/libefa-rdmav34.so libibverbs/librxe-rdmav34.so
    libibverbs/libsiw-rdmav34.so libibverbs/libirdma-rdmav34.so libibverbs/libhns-rdmav34.so
    libfabric.so.1 ucx/libuct_ib.so.0 ucx/libuct_rdmacm.so.0 libgloo.so.0 librpma.so.0 libiscsi.so.7
""".split()


def preload_list():
    return ":".join(f"{FOLDER}/{name}" for name in ("libibverbs.so.1", "librdmacm.so.1", "libnicless_paths.so"))


def environment(preload=True, **more):
    ours = {"LD_LIBRARY_PATH": str(FOLDER), "LD_BIND_NOW": "1", "NICLESS_LOG": "error", **more}
    if preload:
        ours["LD_PRELOAD"] = preload_list()
        ours["NICLESS_PATHS"] = "1"
    return {**os.environ, **ours}


def run(*command, env=None):
    done = subprocess.run(command, env=env or environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=30, check=False)
    return done.returncode, done.stdout


def maps_after_opening(opened, symbol):
    """What is mapped into a program that opened a library by name and took a symbol from it."""
    code = f"import ctypes; h = ctypes.CDLL({opened!r}); h.{symbol}; print(open('/proc/self/maps').read())"
    return run(SYSTEM_PYTHON, "-c", code, env=environment(preload=False))


class Loading(unittest.TestCase):
    def test_every_installed_program_starts_with_all_its_symbols(self):
        missing = []
        for name in PROGRAMS:
            program = shutil.which(name)
            if program is None:
                missing.append(name)
                continue
            for preload in (True, False):
                with self.subTest(program=name, preload=preload):
                    _, text = run(program, "--help", env=environment(preload))
                    self.assertNotRegex(text, BROKEN)
        print("not installed:", " ".join(missing) or "none")

    def test_every_library_beside_ours_finds_its_symbols(self):
        missing = []
        for name in LIBRARIES:
            if not (SYSTEM / name).exists():
                missing.append(name)
                continue
            with self.subTest(library=name):
                status, text = run("ldd", "-r", SYSTEM / name, env=environment(preload=False))
                self.assertEqual(status, 0, text)
                self.assertNotRegex(text, BROKEN)
                self.assertIn(f"{FOLDER}/libibverbs.so.1", text)
        print("not installed:", " ".join(missing) or "none")

    def test_our_own_libraries_lack_nothing(self):
        for name in ("libibverbs.so.1", "librdmacm.so.1", "libnicless_paths.so"):
            status, text = run("ldd", "-r", FOLDER / name, env=environment(preload=False))
            self.assertEqual(status, 0, text)
            self.assertNotRegex(text, BROKEN)

    def test_a_library_opened_by_name_is_ours(self):
        for opened, symbol in (("libibverbs.so.1", "ibv_get_device_list"), ("libibverbs.so", "ibv_get_device_list"),
                               ("librdmacm.so.1", "rdma_create_id"), ("librdmacm.so", "rdma_create_id")):
            with self.subTest(opened=opened):
                status, maps = maps_after_opening(opened, symbol)
                self.assertEqual(status, 0, maps)
                mapped = {os.path.realpath(line.split()[-1]) for line in maps.splitlines() if "/lib" in line}
                of_rdma = {path for path in mapped if re.search(r"lib(ibverbs|rdmacm)\.so", path)}
                expected = {os.path.realpath(FOLDER / "libibverbs.so.1"), os.path.realpath(FOLDER / "librdmacm.so.1")}
                self.assertLessEqual(of_rdma, expected)
                self.assertTrue(of_rdma)

    def test_pyverbs_lists_the_device(self):
        if subprocess.run([SYSTEM_PYTHON, "-c", "import pyverbs"], check=False, capture_output=True).returncode != 0:
            self.skipTest("pyverbs is not installed")
        modules = "device pd mr cq qp srq addr wr mem_alloc cmid"
        code = f"import pyverbs.{', pyverbs.'.join(modules.split())}; " \
               "print([d.name.decode() for d in pyverbs.device.get_device_list()])"
        status, text = run(SYSTEM_PYTHON, "-c", code)
        self.assertEqual((status, text), (0, "['nicless0']\n"))

    def test_libmlx5_and_libefa_say_that_the_device_is_not_theirs(self):
        if not (SYSTEM / "libmlx5.so.1").exists():
            self.skipTest("libmlx5 is not installed")
        code = """
import ctypes
verbs, mlx5, efa = (ctypes.CDLL(n) for n in ("libibverbs.so.1", "libmlx5.so.1", "libefa.so.1"))
verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
devices = verbs.ibv_get_device_list(None)
mlx5.mlx5dv_is_supported.restype = ctypes.c_bool
print(mlx5.mlx5dv_is_supported(ctypes.c_void_p(devices[0])))
"""
        self.assertEqual(run(SYSTEM_PYTHON, "-c", code), (0, "False\n"))


class Quiet(unittest.TestCase):
    """A preload enters every child: nothing may run there before the first verbs call."""

    LOOK = "cd /proc/$$ && ls fd && ls task | wc -l"

    def test_a_shell_has_the_same_descriptors_and_threads(self):
        plain = run("sh", "-c", self.LOOK, env=dict(os.environ))
        preloaded = run("sh", "-c", self.LOOK)
        self.assertEqual(preloaded, plain)

    def test_true_writes_nothing_and_succeeds(self):
        self.assertEqual(run("true", env=environment(NICLESS_LOG="debug")), (0, ""))

    def test_no_file_is_opened(self):
        if shutil.which("strace") is None:
            self.skipTest("strace is not installed")
        calls = "trace=file,network,process,desc"
        status, text = run("strace", "-f", "-e", calls, "-E", f"LD_PRELOAD={preload_list()}", "/bin/true", env=dict(os.environ))
        if "ptrace" in text or status != 0:
            self.skipTest("strace may not trace here")
        opened = re.findall(r'open(?:at)?\((?:AT_FDCWD, )?"([^"]+)"', text)
        others = [p for p in opened if ".so" not in p and not p.endswith("ld.so.cache")]
        self.assertEqual(others, [])
        self.assertNotRegex(text, r"socket\(|clone|eventfd|epoll|memfd")


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv.pop(1)).absolute()
    unittest.main(verbosity=2)

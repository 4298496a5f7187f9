#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Goal: `nicless` starts a program with both libraries in front, or says in one sentence why not, with the right status.

Method: copies of the launcher in scratch folders laid out as a build tree and as an installation, with stub libraries, so
that nothing of RDMA is involved. A program shows what reached it through `env` and /proc/self/maps.

    launcher_test.py LAUNCHER STUB_LIBRARY STATIC_PROGRAM NICLESS_FAULTS
"""
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LAUNCHER, STUB, STATIC, FAULTS = (Path(argument).resolve() for argument in sys.argv[1:5])
LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1", "libnicless_paths.so")
IS_ROOT = os.geteuid() == 0


class Scratch(unittest.TestCase):
    """A folder with a launcher in it, laid out as a build tree."""

    folder_name = "build"

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name).resolve()
        self.root = self.scratch / self.folder_name
        self.libraries = self.root / "lib/nicless"
        self.libraries.mkdir(parents=True)
        for name in LIBRARIES:
            shutil.copy(STUB, self.libraries / name)
        self.launcher = self.root / "nicless"
        shutil.copy(LAUNCHER, self.launcher)
        (self.root / "tools").mkdir()
        shutil.copy(FAULTS, self.root / "tools/nicless-faults")

    def nicless(self, *arguments, launcher=None, **changes):
        """Runs the launcher with the environment changed so; None removes a variable."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("NICLESS_", "LD_", "ASAN_", "UBSAN_"))}
        for name, value in changes.items():
            environment[name] = value
        return subprocess.run([launcher or self.launcher, *arguments], cwd=self.scratch, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def refuses(self, status, sentence, *arguments, **changes):
        result = self.nicless(*arguments, **changes)
        self.assertEqual((result.returncode, result.stdout), (status, ""))
        self.assertIn(sentence, result.stderr)
        self.assertTrue(result.stderr.startswith("nicless: "), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def environment_of(self, *options, **changes):
        result = self.nicless("run", *options, "--", "env", **changes)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return dict(line.split("=", 1) for line in result.stdout.splitlines() if "=" in line)

    def program(self, name, text="#!/bin/sh\necho ran \"$@\"\n", mode=0o755):
        path = self.scratch / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path


class Running(Scratch):
    def test_both_libraries_are_mapped_into_the_program(self):
        result = self.nicless("run", "--", "cat", "/proc/self/maps")
        for name in LIBRARIES:
            self.assertIn(str(self.libraries / name), result.stdout)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_the_variables_name_both_files_and_their_folder(self):
        seen = self.environment_of()
        self.assertEqual(seen["LD_PRELOAD"], ":".join(str(self.libraries / name) for name in LIBRARIES))
        self.assertEqual(seen["LD_LIBRARY_PATH"], str(self.libraries))
        self.assertEqual((seen["NICLESS_LOG"], seen["NICLESS_PATHS"]), ("warn", "1"))
        self.assertNotIn("NICLESS_PCAP", seen)

    def test_what_was_there_stays_behind_ours(self):
        other = self.scratch / "other.so"
        shutil.copy(STUB, other)
        seen = self.environment_of(LD_PRELOAD=str(other), LD_LIBRARY_PATH="/opt/lib")
        self.assertTrue(seen["LD_PRELOAD"].endswith(f"{LIBRARIES[-1]}:{other}"), seen["LD_PRELOAD"])
        self.assertEqual(seen["LD_LIBRARY_PATH"], f"{self.libraries}:/opt/lib")

    def test_a_sanitizer_can_be_preloaded_first(self):
        first = self.scratch / "first.so"
        shutil.copy(STUB, first)
        seen = self.environment_of(NICLESS_PRELOAD_FIRST=str(first))
        self.assertTrue(seen["LD_PRELOAD"].startswith(f"{first}:{self.libraries}"), seen["LD_PRELOAD"])

    def test_the_programs_status_and_arguments_are_its_own(self):
        result = self.nicless("run", "--", "sh", "-c", 'printf "%s|" "$@"; exit 7', "name", "a b", "", "--", "--pcap", "*")
        self.assertEqual((result.returncode, result.stdout), (7, "a b||--|--pcap|*|"))

    def test_a_program_with_spaces_in_its_path_runs(self):
        path = self.program("a folder/my program")
        self.assertEqual(self.nicless("run", "--", str(path), "x").stdout, "ran x\n")

    def test_a_program_in_the_current_folder_needs_its_path(self):
        self.program("here")
        self.assertEqual(self.nicless("run", "--", "./here").stdout, "ran\n")
        self.refuses(127, "here: program not found in PATH", "run", "--", "here")

    def test_the_launcher_works_through_a_link_and_from_a_relative_path(self):
        link = self.scratch / "link"
        link.symlink_to(self.launcher)
        for launcher in (link, "./link", f"{self.folder_name}/nicless"):
            result = self.nicless("run", "--", "env", launcher=launcher)
            self.assertIn(f"LD_LIBRARY_PATH={self.libraries}\n", result.stdout)

    def test_a_nested_run_is_harmless(self):
        result = self.nicless("run", "--", str(self.launcher), "run", "--", "echo", "inside")
        self.assertEqual((result.stdout, result.stderr), ("inside\n", ""))


class InFolderWithSpaces(Running):
    folder_name = "a build folder"

    # LD_PRELOAD has no escape for a space: bare names are found through LD_LIBRARY_PATH instead.
    def test_the_variables_name_both_files_and_their_folder(self):
        seen = self.environment_of()
        self.assertEqual(seen["LD_PRELOAD"], ":".join(LIBRARIES))
        self.assertEqual(seen["LD_LIBRARY_PATH"], str(self.libraries))

    def test_a_sanitizer_can_be_preloaded_first(self):
        first = self.scratch / "first.so"
        shutil.copy(STUB, first)
        self.assertEqual(self.environment_of(NICLESS_PRELOAD_FIRST=str(first))["LD_PRELOAD"],
                         ":".join((str(first),) + LIBRARIES))


class InFolderWithColon(Scratch):
    folder_name = "a:b"

    def test_the_loader_could_not_search_it(self):
        self.refuses(1, "cannot search a folder with a colon", "run", "--", "true")


class Installed(Scratch):
    """The same files moved to <prefix>/bin and <prefix>/<libdir>/nicless."""

    def test_the_libraries_are_found_from_bin(self):
        text = LAUNCHER.read_text()
        relative = text.split("libraries=$here/")[2].splitlines()[0]
        prefix = self.scratch / "prefix"
        (prefix / "bin").mkdir(parents=True)
        folder = Path(os.path.normpath(prefix / "bin" / relative))
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(self.libraries, folder)
        shutil.move(self.launcher, prefix / "bin/nicless")
        result = self.nicless("run", "--", "cat", "/proc/self/maps", launcher=prefix / "bin/nicless")
        self.assertIn(str(folder / LIBRARIES[0]), result.stdout)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


class Options(Scratch):
    def test_a_capture_file_becomes_an_absolute_path(self):
        for arguments in (("--pcap", "x y.pcapng"), ("--pcap=x y.pcapng",), ("--pcap", f"{self.scratch}/x y.pcapng")):
            self.assertEqual(self.environment_of(*arguments)["NICLESS_PCAP"], f"{self.scratch}/x y.pcapng")

    def test_a_log_level_is_passed_on(self):
        for level in ("none", "error", "warn", "info", "debug"):
            self.assertEqual(self.environment_of("--log", level)["NICLESS_LOG"], level)
        self.assertEqual(self.environment_of(NICLESS_LOG="info")["NICLESS_LOG"], "info")
        self.assertEqual(self.environment_of("--log=error", NICLESS_LOG="info")["NICLESS_LOG"], "error")

    def test_modes_reach_the_program(self):
        for option, variable in (("--rocev2", "NICLESS_ROCEV2"), ("--lids", "NICLESS_LIDS")):
            self.assertNotIn(variable, self.environment_of())
            self.assertEqual(self.environment_of(option)[variable], "1")

    def test_a_socket_buffer_is_a_number_of_bytes(self):
        for arguments in (("--socket-buffer", "0"), ("--socket-buffer=212992",)):
            value = self.environment_of(*arguments)["NICLESS_SOCKET_BUFFER"]
            self.assertEqual(value, arguments[-1].split("=")[-1])
        for wrong in ("4M", "-1", "", "12345678901"):
            result = self.nicless("run", f"--socket-buffer={wrong}", "--", "env")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("--socket-buffer", result.stderr)

    def test_faults_become_variables(self):
        options = {"loss": "1%", "duplicate": "0.5%", "reorder": "2%", "corrupt": "0.1%", "delay": "200us", "seed": "7",
                   "rnr": "3"}
        arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
        seen = self.environment_of(*arguments, "--fail=3:RETRY_EXC_ERR", "--fail", "9:transport retry counter exceeded")
        for name, value in options.items():
            self.assertEqual(seen[f"NICLESS_{name.upper()}"], value)
        self.assertEqual(seen["NICLESS_FAIL"], "3:RETRY_EXC_ERR,9:transport retry counter exceeded")

    def test_a_seed_is_chosen_and_printed_where_chance_needs_one(self):
        for option in ("--loss=1%", "--duplicate=1%", "--reorder=1%", "--corrupt=1%"):
            result = self.nicless("run", option, "--", "env")
            seed = re.fullmatch(r"nicless: faults have --seed (\d+)\n", result.stderr)
            self.assertIn(f"NICLESS_SEED={seed.group(1)}\n", result.stdout)
        self.assertEqual(self.environment_of("--loss=1%", NICLESS_SEED="7")["NICLESS_SEED"], "7")
        self.assertNotIn("NICLESS_SEED", self.environment_of("--delay=1ms", "--rnr=1"))

    def test_faults_in_the_environment_are_checked_before_anything_is_said_of_them(self):
        result = self.nicless("run", "--", "env", NICLESS_LOSS="abc")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, r"^nicless: NICLESS_LOSS: [^\n]*abc[^\n]*\n$")
        self.assertEqual(self.environment_of(NICLESS_RNR="2", NICLESS_FAIL="3:RETRY_EXC_ERR,9:RNR_RETRY_EXC_ERR")["NICLESS_RNR"],
                         "2")

    def test_help_and_version_go_to_stdout(self):
        for arguments in (("--help",), ("-h",), ("help",), ("run", "--help")):
            result = self.nicless(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("nicless run [OPTIONS] -- PROGRAM", result.stdout)
        version = self.nicless("--version")
        self.assertRegex(version.stdout, r"^nicless \d+\.\d+\.\d+\n$")

    def test_devices_tells_how_it_is_used(self):
        for option in ("--help", "-h"):
            result = self.nicless("devices", option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("nicless devices", result.stdout)

    def test_no_command_is_wrong_usage(self):
        result = self.nicless()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("nicless run [OPTIONS] -- PROGRAM", result.stderr)


class Refusals(Scratch):
    def test_wrong_usage_is_named(self):
        self.refuses(2, "unknown option --frob", "run", "--frob", "--", "true")
        self.refuses(2, "unknown option --frob", "--frob")
        self.refuses(2, "unknown command frob", "frob")
        self.refuses(2, "missing -- before the program: nicless run -- rping -s", "run", "rping", "-s")
        self.refuses(2, "missing -- and a program", "run")
        self.refuses(2, "missing program after --", "run", "--")
        self.refuses(2, "--pcap needs a value", "run", "--pcap")
        self.refuses(2, "--pcap needs a value", "run", "--pcap", "--", "true")
        self.refuses(2, "--pcap needs a file name", "run", "--pcap=", "--", "true")
        self.refuses(2, "--log loud: unknown level", "run", "--log", "loud", "--", "true")
        self.refuses(2, "devices: unknown argument -x", "devices", "-x")

    def test_a_fault_that_cannot_be_is_named(self):
        self.refuses(2, "--loss: 1 is no percentage from 0% to 100%", "run", "--loss", "1", "--", "true")
        self.refuses(2, "--reorder: 101% is no percentage", "run", "--reorder=101%", "--", "true")
        self.refuses(2, "--delay: 5 is no time of at most 60s", "run", "--delay", "5", "--", "true")
        self.refuses(2, "--seed: x is no seed", "run", "--seed", "x", "--", "true")
        self.refuses(2, "--rnr: many is no number", "run", "--rnr", "many", "--", "true")
        self.refuses(2, "--fail: frob is no status that a send can fail with; known are LOC_LEN_ERR,", "run", "--fail",
                     "1:frob", "--", "true")
        self.refuses(2, "--loss needs a value", "run", "--loss", "--", "true")
        self.refuses(2, "--loss: an empty value is no percentage", "run", "--loss=", "--", "true")

    def test_a_capture_file_that_cannot_be_is_named(self):
        old = self.scratch / "old.pcapng"
        old.write_bytes(b"a capture")
        self.refuses(127, "nosuchprogram", "run", "--pcap", str(old), "--", "nosuchprogram")
        self.assertEqual(old.read_bytes(), b"a capture")  # nothing ran, nothing is lost
        with open(old) as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            self.refuses(2, "another program is writing that file", "run", "--pcap", str(old), "--", "true")
        self.refuses(2, "there is no folder nowhere", "run", "--pcap", "nowhere/x.pcapng", "--", "true")
        self.refuses(2, "that is a folder", "run", "--pcap", str(self.scratch), "--", "true")

    @unittest.skipIf(IS_ROOT, "root may write anywhere")
    def test_a_capture_file_without_permission_is_named(self):
        self.refuses(2, "no permission to write in /usr", "run", "--pcap", "/usr/x.pcapng", "--", "true")

    def test_a_program_that_is_not_there_is_named(self):
        self.refuses(127, "no-such-program: program not found in PATH", "run", "--", "no-such-program")
        self.refuses(127, "/no/such: program not found", "run", "--", "/no/such")
        self.refuses(127, "the name of the program is empty", "run", "--", "")
        self.refuses(127, "program not found in PATH", "run", "--", "cd")

    def test_a_program_that_cannot_be_executed_is_named(self):
        plain = self.program("plain", mode=0o644)
        self.refuses(126, f"{plain}: not executable", "run", "--", str(plain))
        self.refuses(126, "is a folder", "run", "--", str(self.scratch))
        found = os.environ["PATH"] + f":{self.scratch}"
        self.refuses(126, f"{plain}: not executable", "run", "--", "plain", PATH=found)

    def test_an_executable_later_in_the_path_wins(self):
        self.program("one/tool", mode=0o644)
        self.program("two/tool")
        path = f"{self.scratch}/one:{self.scratch}/two:{os.environ['PATH']}"
        self.assertEqual(self.nicless("run", "--", "tool", PATH=path).stdout, "ran\n")

    def test_missing_libraries_are_named(self):
        (self.libraries / LIBRARIES[1]).unlink()
        self.refuses(1, f"{self.libraries}/librdmacm.so.1 is missing", "run", "--", "true")
        self.refuses(1, f"{self.libraries}/librdmacm.so.1 is missing", "devices")

    def test_a_missing_companion_is_named(self):
        self.refuses(1, "nicless-trace is missing", "trace", "x")
        (self.root / "tools/nicless-faults").unlink()
        self.refuses(1, "nicless-faults is missing", "run", "--loss=1%", "--", "true")


class OutOfReach(Scratch):
    """Programs that no preload reaches run all the same, after a warning."""

    def warns(self, path, sentence):
        result = self.nicless("run", "--", str(path))
        self.assertIn(sentence, result.stderr)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.nicless("run", "--log", "error", "--", str(path)).stderr, "")

    def test_a_static_program(self):
        self.warns(STATIC, "is statically linked")

    def test_a_setuid_program_of_another_user(self):
        if not IS_ROOT:
            self.skipTest("only root can make one")
        path = self.scratch / "setuid"
        shutil.copy(shutil.which("true"), path)
        os.chown(path, 65534, 65534)
        path.chmod(0o4755)
        self.warns(path, "is setuid or setgid")

    def test_a_setuid_program_of_the_same_user_is_within_reach(self):
        path = self.scratch / "setuid"
        shutil.copy(shutil.which("true"), path)
        path.chmod(0o4755)
        self.assertEqual(self.nicless("run", "--", str(path)).stderr, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])

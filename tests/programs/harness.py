# SPDX-License-Identifier: MIT
"""Runs RDMA programs under nicless and watches what they do.

A World is where the two ends live: loopback, or two network namespaces joined by a veth pair. A Process is one program
with its output in memory and on disk. Nothing here sleeps to let something happen: every wait names a condition that it
looks for, and has a bound.
"""
import collections
import copy
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import termios
import threading
import time

FAILS = "an error"  # exit statuses that a case may ask for: any but 0
ANY = "anything"
TICK = 0.01  # between two looks at a condition that nothing announces (a bound port)
ALONE = -1
PORTS = range(10000, 32000)  # below those that the kernel gives to whoever asks for any


class Failure(Exception):
    """A claim of the case does not hold; the text says which."""


class Skip(Exception):
    """The case cannot run here; the text says why."""


class Options:
    """What the command line chose, for every case."""

    def __init__(self, launcher, sanitize=False, pcap=True, log=None, patience=1.0):
        self.launcher = pathlib.Path(launcher).resolve()
        self.libraries = self.launcher.parent / "lib" / "nicless"
        self.examples = self.launcher.parent / "examples"
        self.exchange = self.launcher.parent / "tests" / "softroce" / "exchange"
        self.sanitize = sanitize
        self.pcap = pcap
        self.log = log
        self.patience = patience  # all bounds are multiplied by it

    def environment(self):
        env = dict(os.environ)
        for name in [n for n in env if n.startswith("NICLESS_")]:
            del env[name]
        if self.sanitize:
            # The sanitizers' libraries have to come before ours.
            env["NICLESS_PRELOAD_FIRST"] = ":".join(runtime_library(n) for n in ("libasan.so", "libubsan.so"))
            env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1"
            env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1:abort_on_error=1"
        if self.log:
            env["NICLESS_LOG"] = self.log
        return env


def runtime_library(name):
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return str(pathlib.Path(found.stdout.strip()).resolve())


class Process:
    """One program, started. Its output goes through a terminal, so that it comes line by line."""

    KILLED = -signal.SIGKILL  # its status, if so

    def __init__(self, role, argv, env, folder):
        self.role = role
        self.argv = [str(a) for a in argv]
        self.text = ""
        self._log = open(folder / f"{role}.out", "w", encoding="utf-8")
        self._more = threading.Condition()
        self._ended = False
        ours, theirs = os.openpty()
        attributes = termios.tcgetattr(theirs)
        attributes[1] &= ~termios.OPOST  # lines end as the program ends them
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        self.popen = subprocess.Popen(self.argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs,
                                      stderr=theirs, start_new_session=True)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self._reader.start()

    def _read(self, fd):
        while True:
            try:
                piece = os.read(fd, 65536)
            except OSError:  # EIO: the last holder of the terminal has gone
                piece = b""
            with self._more:
                self.text += piece.decode("utf-8", "replace")
                self._ended = not piece
                self._more.notify_all()
            self._log.write(piece.decode("utf-8", "replace"))
            self._log.flush()
            if not piece:
                break
        os.close(fd)
        self._log.close()

    @property
    def pid(self):
        return self.popen.pid

    def is_running(self):
        return self.popen.poll() is None

    def wait_output(self, pattern, bound):
        """Until a line of the output matches; the match."""
        deadline = time.monotonic() + bound
        with self._more:
            while True:
                match = re.search(pattern, self.text, re.MULTILINE)
                if match:
                    return match
                if self._ended:
                    raise Failure(f"{self.role} ended without printing /{pattern}/")
                if not self._more.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise Failure(f"{self.role} did not print /{pattern}/ within {bound:.0f} s")

    def wait_port(self, kind, port, bound):
        """Until this process has bound UDP `port`, or listens on TCP `port`."""
        deadline = time.monotonic() + bound
        while not holds_port(self.pid, kind, port):
            if not self.is_running():
                raise Failure(f"{self.role} ended before it had {kind} port {port}")
            if time.monotonic() >= deadline:
                raise Failure(f"{self.role} has not bound {kind} port {port} within {bound:.0f} s")
            select.select([], [], [], TICK)

    def wait_file(self, path, size, bound):
        """Until the file, which this process writes, has `size` bytes."""
        deadline = time.monotonic() + bound
        while not (path.exists() and path.stat().st_size >= size):
            if not self.is_running():
                raise Failure(f"{self.role} ended before {path.name} had {size} bytes")
            if time.monotonic() >= deadline:
                raise Failure(f"{path.name} has not got {size} bytes within {bound:.0f} s")
            select.select([], [], [], TICK)

    def wait_end(self, bound):
        """Until it has ended; its exit status (negative: the signal)."""
        try:
            status = self.popen.wait(bound)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.role} has not ended within {bound:.0f} s") from None
        self._reader.join(bound)
        return status

    def expect_end(self, bound, status=0, patterns=()):
        """It ends within the bound, with this status (or FAILS, or ANY), having printed all the patterns."""
        got = self.wait_end(bound)
        if not (status == ANY or (status == FAILS and got != 0) or got == status):
            raise Failure(f"{self.role} ended with status {got}, not {status}")
        for pattern in patterns:
            if not re.search(pattern, self.text, re.MULTILINE):
                raise Failure(f"{self.role} did not print /{pattern}/")

    def expect_running(self):
        if not self.is_running():
            raise Failure(f"{self.role} has ended with status {self.popen.returncode}")

    def signal(self, number):
        if self.is_running():
            self.popen.send_signal(number)

    def end(self):
        """For cleaning up: whatever of its session still runs is killed."""
        if self.is_running():
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.popen.wait()
        self._reader.join(5)


def is_free(port):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as udp, socket.socket(socket.AF_INET6) as tcp:
        try:
            udp.bind(("::", port))
            tcp.bind(("::", port))
        except OSError:
            return False
    return True


def holds_port(pid, kind, port):
    """Whether process `pid` has a socket of its own bound to `port` (for TCP: listening)."""
    inodes = {inode for bound, inode in bound_sockets(pid, kind) if bound == port}
    return bool(inodes) and any(link in inodes for link in open_files(pid))


def ports_of(process):
    """The UDP ports that the process has."""
    links = set(open_files(process.pid))
    return sorted({port for port, inode in bound_sockets(process.pid, "udp") if inode in links})


def bound_sockets(pid, kind):
    """(port, link in /proc/PID/fd) of all sockets in the network namespace of process `pid`."""
    for family in ("", "6"):
        try:
            rows = pathlib.Path(f"/proc/{pid}/net/{kind}{family}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if kind == "udp" or columns[3] == "0A":
                yield int(columns[1].rsplit(":", 1)[1], 16), f"socket:[{columns[9]}]"


def open_files(pid):
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")
        except OSError:
            pass


class Shared:
    """What the cases of a world, which run side by side, have in common."""

    def __init__(self):
        self.lock = threading.Lock()
        self.ports = set()  # given out already
        self.certain_ports = collections.Counter()  # cases that share a port; ALONE: one case has it
        self.certain_ports_changed = threading.Condition()
        self.known = {}


class World:
    """Where the two ends live. `a` is the host of servers, `b` the host of clients. Each case has a view of its own."""

    name = "loopback"
    address, address6 = "127.0.0.1", "::1"  # the server's, as the client writes it
    client, client6 = "127.0.0.1", "::1"
    interface = "lo"

    def __init__(self, options, scratch):
        self.options = options
        self.folder = scratch
        self.processes = []
        self._held = []
        self._shared = Shared()

    def open(self):
        pass

    def close(self):
        pass

    def prefix(self, host):
        del host
        return []

    def free_port(self):
        """A port that nobody has, for UDP and for TCP, and that no other case gets."""
        while True:
            port = random.choice(PORTS)
            with self._shared.lock:
                if port in self._shared.ports:
                    continue
                self._shared.ports.add(port)
            if is_free(port):
                return port

    def certain_port(self, port, alone=True):
        """The one port that a program can use: until it ends this case's alone, or that of those who share it."""
        held, changed = self._shared.certain_ports, self._shared.certain_ports_changed
        with changed:
            changed.wait_for(lambda: held[port] == 0 or (held[port] > 0 and not alone))
            held[port] = ALONE if alone else held[port] + 1
        self._held.append(port)
        return port

    def _give_back(self, port):
        held, changed = self._shared.certain_ports, self._shared.certain_ports_changed
        with changed:
            held[port] = 0 if held[port] == ALONE else held[port] - 1
            changed.notify_all()

    def once(self, question):
        """question(world), a function, is asked by the first case that wants to know."""
        with self._shared.lock:
            known = self._shared.known.get(question)
        if known is None:
            known = question(self)
            with self._shared.lock:
                self._shared.known[question] = known
        return known

    def for_case(self, folder):
        """The view of one case: its own folder, its own processes."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        view = copy.copy(self)
        view.folder = folder
        view.processes = []
        view._held = []
        return view

    def start(self, role, argv, host="a", launch="launcher", options=(), env=None, pcap=True):
        """Starts a program. launch: "launcher" (nicless run), "library_path" (no launcher) or "bare" (as it is)."""
        environment = self.options.environment()
        environment.update(env or {})
        command = self.prefix(host)
        if launch == "launcher":
            recording = ["--pcap", self.folder / f"{role}.pcapng"] if pcap and self.options.pcap else []
            command = [*command, self.options.launcher, "run", *recording, *options, "--"]
        elif launch == "library_path":
            environment["LD_LIBRARY_PATH"] = str(self.options.libraries)
            environment["LD_PRELOAD"] = environment.get("NICLESS_PRELOAD_FIRST", "")
        process = Process(role, [*command, *argv], environment, self.folder)
        self.processes.append(process)
        return process

    def run(self, role, argv, bound=20, status=0, prints=(), **how):
        """Runs a program to its end, with what expect_end() asks of it, and gives its output."""
        process = self.start(role, argv, **how)
        process.expect_end(self.bound(bound), status, prints)
        return process.text

    def bound(self, seconds):
        return seconds * self.options.patience

    def finish(self):
        for process in self.processes:
            process.end()
        while self._held:
            self._give_back(self._held.pop())


class NamespaceWorld(World):
    """Two network namespaces, two hosts: nothing is shared but a veth pair with an Ethernet MTU."""

    name = "netns"
    address, address6 = "10.78.0.1", "fd78::1"
    client, client6 = "10.78.0.2", "fd78::2"
    interface = "veth0"

    def __init__(self, options, scratch):
        super().__init__(options, scratch)
        self.hosts = {end: f"nicless-programs-{os.getpid()}-{end}" for end in "ab"}

    def open(self):
        for end, name in self.hosts.items():
            if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode != 0:
                raise Skip("no network namespaces (needs root)")
            self._ip(end, "link", "set", "lo", "up")
        a, b = self.hosts["a"], self.hosts["b"]
        subprocess.run(["ip", "link", "add", "veth0", "netns", a, "type", "veth", "peer", "name", "veth0", "netns", b],
                       check=True)
        for end, number in (("a", 1), ("b", 2)):
            self._ip(end, "addr", "add", f"10.78.0.{number}/24", "dev", "veth0")
            self._ip(end, "addr", "add", f"fd78::{number}/64", "dev", "veth0", "nodad")
            self._ip(end, "link", "set", "veth0", "mtu", "1500", "up")
        self._wait_carrier()

    def close(self):
        for name in self.hosts.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def prefix(self, host):
        return ["ip", "netns", "exec", self.hosts[host]]

    def _ip(self, end, *arguments):
        done = subprocess.run(["ip", "-n", self.hosts[end], *arguments], check=True, capture_output=True, text=True)
        return done.stdout

    def _wait_carrier(self):
        for end in self.hosts:
            deadline = time.monotonic() + 10
            while "state UP" not in self._ip(end, "link", "show", "veth0"):
                if time.monotonic() >= deadline:
                    raise Failure("the veth pair does not come up")
                select.select([], [], [], TICK)

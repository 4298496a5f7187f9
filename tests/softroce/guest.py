# SPDX-License-Identifier: MIT
"""A virtual machine whose kernel has Soft-RoCE, on a tap device of a network namespace of its own.

Emulation is slow and time in it means nothing: bounds here are generous, and nothing waits without a condition.
"""
import itertools
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import time

from harness import Failure, Skip, TICK

HERE = pathlib.Path(__file__).resolve().parent
HOST, HOST6 = "10.77.0.254", "fd77::fe"
GUEST, GUEST6 = "10.77.0.1", "fd77::1"
TAP = "tap0"
BUILD_BOUND = 300  # seconds; a minute is usual


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "nicless" / "softroce"


def build(kernel, folder):
    """Makes the guest unless it is there already; how many seconds that took."""
    if (folder / kernel / "initrd").exists():
        return 0
    started = time.monotonic()
    try:
        made = subprocess.run([HERE / "build_guest", kernel, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False, timeout=BUILD_BOUND)
    except subprocess.TimeoutExpired:
        raise Skip(f"the guest cannot be made within {BUILD_BOUND} s: Debian's packages come too slowly") from None
    if made.returncode != 0:
        said = made.stdout.strip().splitlines() or ["no output"]
        raise Skip(f"the guest cannot be made: {said[-1]}")
    return time.monotonic() - started


class Network:
    """A namespace with one tap device: the host's end of the wire."""

    def __init__(self, mtu):
        self.name = f"nicless-softroce-{os.getpid()}"
        self.prefix = ["ip", "netns", "exec", self.name]
        self.mtu = mtu

    def open(self):
        if subprocess.run(["ip", "netns", "add", self.name], capture_output=True, check=False).returncode != 0:
            raise Skip("no network namespaces (needs root)")
        for command in (f"ip tuntap add {TAP} mode tap", f"ip link set {TAP} mtu {self.mtu} up", "ip link set lo up",
                        f"ip addr add {HOST}/24 dev {TAP}", f"ip -6 addr add {HOST6}/64 dev {TAP} nodad"):
            done = subprocess.run([*self.prefix, *command.split()], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Skip(f"{command}: {done.stderr.strip()}")

    def close(self):
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)


class Job:
    """A command that runs in the guest. It has the same questions as harness.Process."""

    KILLED = 128 + signal.SIGKILL  # as its shell puts it

    def __init__(self, guest, role, name):
        self.guest, self.role, self.name = guest, role, name
        self.argv = []

    def _file(self, suffix):
        return self.guest.share / f"{self.name}.{suffix}"

    @property
    def text(self):
        try:
            return self._file("out").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def has_ended(self):
        return self._file("status").exists()

    def wait_end(self, bound):
        self.guest.wait(self.has_ended, bound, f"{self.role} has not ended within {bound:.0f} s")
        return int(self._file("status").read_text(encoding="ascii"))

    def expect_end(self, bound, status=0, patterns=()):
        got = self.wait_end(bound)
        if got != status:
            raise Failure(f"{self.role} ended with status {got}, not {status}")
        for pattern in patterns:
            if not re.search(pattern, self.text, re.MULTILINE):
                raise Failure(f"{self.role} did not print /{pattern}/")


class Guest:
    def __init__(self, kernel, folder, network, scratch):
        self.kernel, self.folder, self.network = kernel, folder, network
        self.share = scratch / "share"
        self.socket = scratch / "jobs.socket"
        self.console = scratch / "console.log"
        self.popen = None
        self._line = None  # to the guest's job port
        self._numbers = itertools.count(1)

    def boot(self, programs, bound=180):
        """With these programs of ours in its PATH."""
        shutil.rmtree(self.share, ignore_errors=True)
        (self.share / "bin").mkdir(parents=True)
        for program in programs:
            shutil.copy(program, self.share / "bin")
        append = (f"console=ttyS0 quiet mitigations=off nokaslr no_timer_check random.trust_cpu=on panic=-1 "
                  f"address={GUEST}/24 address6={GUEST6}/64 mtu={self.network.mtu}")
        plain = ",".join(f"{name}=off" for name in ("csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ufo",
                                                    "host_tso4", "host_tso6", "host_ufo"))
        # Emulated, not virtualised: it runs anywhere, also where /dev/kvm is there and does not work.
        command = [*self.network.prefix, "qemu-system-x86_64", "-M", "pc,usb=off", "-accel", "tcg,thread=multi", "-cpu", "max",
                   "-m", "256", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                   "-kernel", self.folder / self.kernel / "vmlinuz", "-initrd", self.folder / self.kernel / "initrd",
                   "-append", append, "-serial", f"file:{self.console}",
                   "-netdev", f"tap,id=net,ifname={TAP},script=no,downscript=no",
                   "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:01,romfile=,{plain}",
                   "-virtfs", f"local,path={self.share},mount_tag=share,security_model=none,multidevs=remap",
                   "-device", "virtio-serial-pci",
                   "-chardev", f"socket,id=jobs,path={self.socket},server=on,wait=off",
                   "-device", "virtserialport,chardev=jobs,name=jobs"]
        with open(self.share.parent / "qemu.log", "wb") as log:
            self.popen = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          start_new_session=True)
        self.wait(lambda: self.release() != "", bound, f"the guest has not come up within {bound} s; see {self.console}")

        # Kept open: what is written into it just before it closes may be lost.
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(str(self.socket))

    def release(self):
        """The kernel's, or "" before the guest is up."""
        up = self.share / "up"
        return up.read_text(encoding="ascii").strip() if up.exists() else ""

    def wait(self, condition, bound, otherwise):
        deadline = time.monotonic() + bound
        while not condition():
            if self.popen.poll() is not None:
                raise Failure(f"the guest has ended; see {self.console}")
            if time.monotonic() >= deadline:
                raise Failure(otherwise)
            select.select([], [], [], TICK)

    def start(self, role, command):
        """Starts a shell command in the guest."""
        job = Job(self, role, f"job{next(self._numbers)}")
        job.argv = ["guest:", command]
        (self.share / f"{job.name}.sh").write_text(command + "\n", encoding="utf-8")
        self._line.sendall(f"{job.name}\n".encode())
        self.wait((self.share / f"{job.name}.out").exists, 60, f"the guest does not take the job {command!r}")
        return job

    def run(self, command, bound=60):
        """Runs a shell command to its end; (status, output)."""
        job = self.start("guest", command)
        return job.wait_end(bound), job.text

    def close(self):
        if self.popen is not None and self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        if self._line is not None:
            self._line.close()

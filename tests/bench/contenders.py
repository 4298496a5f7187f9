# SPDX-License-Identifier: MIT
"""What is run, and which figures it prints. A contender is one command, or a server and a client; measure() runs it to
its end and gives its figures by name."""
import pathlib
import re
import select
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))

import harness  # noqa: E402  (the path has to be set first)
import machine  # noqa: E402

LATENCY, BANDWIDTH, RATE = "us", "MiB/s", "messages/s"
# The device of lo alone: it has the largest path MTU (4096), as the datagrams of the raw streams do.
LOOPBACK_DEVICE = {"NICLESS_DEVICES": "nicless0=lo"}
BOUND = 120  # seconds for any one program


class Contender:
    """figures: name -> (unit, factor, pattern with one group). needs: a program that may not be installed."""

    needs = None

    def __init__(self, name, figures):
        self.name, self.figures = name, figures

    def measure(self, world, options):
        output = self.run(world, options)
        return {figure: factor * self._find(pattern, output) for figure, (_, factor, pattern) in self.figures.items()}

    def _find(self, pattern, output):
        found = re.findall(pattern, output, re.MULTILINE)
        if not found:
            raise harness.Failure(f"{self.name} printed no figure")
        return float(found[-1])  # a last line may sum up

    def run(self, world, options):
        raise NotImplementedError


class Raw(Contender):
    """A yardstick of this folder: one command runs both ends, and places them."""

    def __init__(self, command, figures, has_buffers=True):
        super().__init__(command, figures)
        self._has_buffers = has_buffers

    def run(self, world, options):
        name, *arguments = self.name.split()
        buffers = ["--default-buffers"] if options.has_default_buffers and self._has_buffers else []
        program = options.build / "tests" / "bench" / name
        return world.run(name, [program, *buffers, *arguments], launch="bare", bound=BOUND)


PINNED, ONE_CORE, UNPINNED = "pinned", "one core", "unpinned"


class Pair(Contender):
    """A server and a client, each on a processor of its own, both on one, or wherever the scheduler puts them. {port}
    stands for a port that is free. is_ours: under `nicless run`; else as it is."""

    is_ours = True

    def __init__(self, name, figures, server, client, placement=PINNED):
        super().__init__(name, figures)
        self._commands = server, client
        self._placement = placement

    def run(self, world, options):
        port = world.free_port()
        server_argv, client_argv = (command.format(port=port).split() for command in self._commands)
        server = self._start(world, options, "server", server_argv, is_last=self._placement != ONE_CORE)
        server.wait_port("tcp", port, 10)
        client = self._start(world, options, "client", client_argv, is_last=False)
        client.expect_end(BOUND)
        server.expect_end(20)
        return client.text

    def _start(self, world, options, role, argv, is_last):
        core = machine.processors()[-1 if is_last else 0]
        place = [] if self._placement == UNPINNED else ["taskset", "-c", str(core)]
        launch, env = ("launcher", {**LOOPBACK_DEVICE, **options.environment}) if self.is_ours else ("bare", self.environment())
        return world.start(role, [*place, *argv], launch=launch, env=env)

    def environment(self):
        return {}


class Perftest(Pair):
    def __init__(self, command, figures, placement=PINNED):
        name = command.split(" -n ")[0] + ("" if placement == PINNED else f", {placement}")
        program, arguments = command.split(" ", 1)
        whole = f"{program} -F -p {{port}} {arguments}"
        super().__init__(name, figures, whole, f"{whole} 127.0.0.1", placement)


def perftest_latency(command, size, placement=PINNED):
    row = rf"^ *{size}\s+\d+\s+[0-9.]+\s+[0-9.]+\s+"
    return Perftest(command, {"typical": (LATENCY, 1, row + r"([0-9.]+)"),
                              "average": (LATENCY, 1, row + r"[0-9.]+\s+([0-9.]+)")}, placement)


def perftest_bandwidth(command, size):
    row = rf"^ *{size}\s+\d+\s+[0-9.]+\s+"
    return Perftest(command, {"bandwidth": (BANDWIDTH, 1, row + r"([0-9.]+)"),
                              "rate": (RATE, 1e6, row + r"[0-9.]+\s+([0-9.]+)")})


class Ucx(Pair):
    """UCX over its TCP transport, between two processes as ours, without nicless."""

    is_ours, needs = False, "ucx_perftest"

    def __init__(self, test, arguments, figures):
        super().__init__(f"ucx_perftest -t {test} {arguments.split(' -n ')[0]}", figures, "ucx_perftest -p {port}",
                         f"ucx_perftest 127.0.0.1 -p {{port}} -f -t {test} {arguments}")

    def environment(self):
        return {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}


class FiPingpong(Pair):
    """libfabric's ping-pong over its tcp provider; it prints an average."""

    is_ours, needs = False, "fi_pingpong"

    def __init__(self, size, iterations):
        rows = {64: "64", 65536: "64k"}
        command = f"fi_pingpong -p tcp -e msg -I {iterations} -S {size}"
        figures = {"average": (LATENCY, 1, rf"^{rows[size]}\s+\S+\s+=\S+\s+\S+\s+\S+\s+\S+\s+([0-9.]+)")}
        super().__init__(f"fi_pingpong -p tcp -S {size}", figures, command + " -B {port}",
                         command + " -P {port} 127.0.0.1")


class Incast(Contender):
    """One process that receives, and so many that send to it at once."""

    def __init__(self, senders, megabytes):
        super().__init__(f"incast {senders}", {"bandwidth": (BANDWIDTH, 1, r"mebibytes_per_second ([0-9.]+)")})
        self._arguments = [str(senders), str(megabytes)]

    def run(self, world, options):
        program = options.build / "tests" / "bench" / "incast"
        return world.run("incast", [program, *self._arguments], bound=BOUND, env={**LOOPBACK_DEVICE, **options.environment})


class Idle(Contender):
    """A program that waits: how often do its threads wake up in a second, and what does a queue pair of it take?"""

    _SECONDS = 3.0

    def __init__(self, queue_pairs):
        figures = {"wakeups": ("wake-ups/s", 1, None)}
        if queue_pairs > 0:
            figures["memory"] = ("bytes", 1, r"resident_bytes_per_queue_pair ([0-9]+)")
        super().__init__(f"idle program, {queue_pairs or 'no'} queue pairs", figures)
        self._queue_pairs = queue_pairs

    def measure(self, world, options):
        program = options.build / "tests" / "bench" / "idle"
        argv = [program, *([str(self._queue_pairs)] if self._queue_pairs else [])]
        process = world.start("idle", argv, env={**LOOPBACK_DEVICE, **options.environment})
        process.wait_output("^idle", BOUND)
        select.select([], [], [], 1.0)  # what it did a moment ago may still have timers
        before, start = voluntary_switches(process.pid), time.monotonic()
        select.select([], [], [], self._SECONDS)
        figures = {"wakeups": (voluntary_switches(process.pid) - before) / (time.monotonic() - start)}
        if self._queue_pairs:
            figures["memory"] = self._find(self.figures["memory"][2], process.text)
        process.end()
        return figures


def voluntary_switches(pid):
    """Of all threads of a process."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(encoding="ascii"), re.MULTILINE).group(1))
    return total

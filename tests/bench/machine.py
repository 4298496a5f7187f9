# SPDX-License-Identifier: MIT
"""Was the machine quiet enough to tell? What the processors did during a measurement, as /proc/stat has it: time that
the hypervisor stole, and time that went to programs which are not ours. The third sign of noise, that the raw peer's
own figures differ from round to round, is rows.py's."""
import os
import pathlib
import platform
import resource
import time

STEAL_MAX = 0.02  # of all processor time
OTHERS_MAX = 0.10  # of one processor
TICKS = os.sysconf("SC_CLK_TCK")


def processors():
    return sorted(os.sched_getaffinity(0))


def describe():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"processor": model, "cores": len(processors()), "kernel": platform.release(),
            "receive_buffer_default": sysctl("net/core/rmem_default"), "receive_buffer_max": sysctl("net/core/rmem_max")}


def sysctl(name):
    try:
        return int(pathlib.Path("/proc/sys", name).read_text(encoding="ascii"))
    except OSError:
        return None  # a network namespace does not have them all


class _Reading:
    def __init__(self):
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
        user, nice, system = fields[0:3]
        self.steal = fields[7] / TICKS
        self.busy = (user + nice + system) / TICKS  # interrupts apart: with loopback they are our own work
        ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        self.ours = sum(usage.ru_utime + usage.ru_stime for usage in ours)
        self.at = time.monotonic()


class Load:
    """What happened while measurements were taken: `with load: ...`, as often as there are."""

    def __init__(self):
        self.seconds = self.steal = self.others = 0.0
        self._start = None

    def __enter__(self):
        self._start = _Reading()
        return self

    def __exit__(self, *exception):
        end, start = _Reading(), self._start
        self.seconds += end.at - start.at
        self.steal += end.steal - start.steal
        self.others += max(0.0, (end.busy - start.busy) - (end.ours - start.ours))

    def add(self, other):
        self.seconds += other.seconds
        self.steal += other.steal
        self.others += other.others

    def steal_share(self):
        return self.steal / (self.seconds * len(processors())) if self.seconds else 0.0

    def others_share(self):
        """Of one processor."""
        return self.others / self.seconds if self.seconds else 0.0

    def complaints(self):
        found = []
        if self.steal_share() > STEAL_MAX:
            found.append(f"the hypervisor took {self.steal_share():.0%} of the time")
        if self.others_share() > OTHERS_MAX:
            found.append(f"other programs took {self.others_share():.0%} of a processor")
        return found

    def as_json(self):
        return {"seconds": round(self.seconds, 2), "steal_share": round(self.steal_share(), 4),
                "others_share_of_one_processor": round(self.others_share(), 4)}

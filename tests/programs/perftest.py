# SPDX-License-Identifier: MIT
"""Pairs of perftest: ib_{send,write,read,atomic}_{bw,lat} in each way that they can be run over RoCE.

Checked are the rows of figures that each end prints: message sizes, iterations, and that all figures are numbers that
can be. How good they are is not looked at: nothing here passes or fails by time.

What no acknowledgement holds back (UC, UD) is kept to what fits a socket buffer: a sender that is faster than the
receiver would lose messages, and the programs wait for each of them. Two combinations are left out, as the programs wait for
ever where completions come in a burst, whatever the device: -e with -b and several -q, and --perform_warm_up without -Q 1.
With -R perftest itself refuses UC, XRC, groups and IPv6 addresses.
"""
import math
import re

from harness import Failure
from pairs import Pair

SMALL = "-s 1000 -n 50"  # for UD: fits the MTU of an Ethernet
FEW = "-s 4096 -n 20"  # for UC

# All of these are run with each of -s and -n that they do not name themselves. Below the line: with --long only.
BANDWIDTH = {
    "ib_send_bw": ("", "-e", "-R", "-R -e", "-b -q 8", "-q 8 -R", "-b -e", "-m 256 -q 2", "-x {gid6}", "-t 1 -r 1", "-l 8",
                   "-l 8 -q 2 --recv_post_list=8", "-Q 1", "--use-srq -q 4", "--use-srq -R -b", "--inline_recv=64",
                   "-D 1", f"-c UC {FEW}", f"-c UC -e {FEW}", f"-c UC -b -q 4 {FEW}", f"-c UD {SMALL}", f"-c UD -b {SMALL}",
                   f"-c UD -e -x {{gid6}} {SMALL}", f"-c UD --use-srq {SMALL}", f"-c UD -R -b {SMALL}", "-c XRC",
                   "-c XRC -b", "-c XRC -e -q 4", f"-c UD -g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3 {SMALL}",
                   "-a -n 20"),
    "ib_write_bw": ("", "-R", "--odp", "-b -q 8", "-q 8 -R", "-m 256", "-x {gid6}", "-t 1", "-l 8 -q 2", "-I 64 -s 64", "-D 1",
                    f"-c UC {FEW}", f"-c UC -b -q 4 {FEW}", "-c XRC", "-c XRC -b -q 4", "-a -n 20"),
    "ib_read_bw": ("", "-e", "-R", "-R -e", "-b -q 8", "-m 256 -o 1", "-x {gid6}", "-t 1", "-l 8", "-o 4 -q 2", "-D 1",
                   "-c XRC", "-c XRC -b", "-a -n 20"),
    "ib_atomic_bw": ("", "-e", "-R", "-R -e", "-b -q 8", "-x {gid6}", "-t 1 -o 1", "-A CMP_AND_SWAP", "-l 4 -o 4 -A CMP_AND_SWAP -q 2",
                     "-c XRC", "-c XRC -A CMP_AND_SWAP", "-D 1"),
}
BANDWIDTH_LONG = {
    "ib_send_bw": ("-z", "--odp", "-b -R", "-N", "--report_gbits", "--mr_per_qp -q 2", "--use_old_post_send", "--ipv6", "-S 1",
                   "--tclass=8", "-R -T 32", "-u 10", "--perform_warm_up -Q 1", "--disable_pcie_relaxed", "--cpu_util -D 1",
                   "--retry_count=3 -R", "-R -m 512 -q 2", "-R -D 1", "-R -a -n 20", "-R -l 4 --recv_post_list=4",
                   f"-c UD -R -q 2 {SMALL}", f"-c UD -R -e {SMALL}", "--reversed", "-d nicless0 -i 1", "--source_ip={server}", "--use-srq -q 4 -b",
                   "-r 1", "-s 1", "-s 1048577 -n 20", "-s 8388608 -n 5", "-b -a -n 20", f"-c UD -q 4 -s 1000 -n 20"),
    "ib_write_bw": ("-z", "-b", "-b -R", "-R -T 96", "-R -D 1", "-R -m 512 -q 2", "-R -a -n 20", "-N", "--report_gbits", "--mr_per_qp -q 2", "--use_old_post_send", "-Q 1",
                    "--reversed", "--perform_warm_up -Q 1", "-s 1", "-s 1048577 -n 20", "-s 8388608 -n 5", "-b -a -n 20"),
    "ib_read_bw": ("-z", "-b", "-b -R -e", "-R -T 96 -q 2", "-R -D 1", "-R -m 512 -o 1", "-N", "--report_gbits", "--mr_per_qp -q 2", "--use_old_post_send", "-o 16",
                   "--perform_warm_up -Q 1", "-s 1", "-s 1048577 -n 20", "-s 8388608 -n 5", "-b -a -n 20"),
    "ib_atomic_bw": ("-z", "-b -R", "-R -T 96", "-R -D 1", "-R -q 4 -A CMP_AND_SWAP", "-N", "-o 16 -q 4", "--use_old_post_send", "-A CMP_AND_SWAP -b -e"),
}
LATENCY = {
    "ib_send_lat": ("", "-e", "-R", "-R -e -s 3000", "-m 256 -s 3000", "-x {gid6}", "-I 0 -s 2000", "-I 100",
                    "--use-srq", "-D 1", f"-c UC", "-c UC -e", f"-c UD", f"-c UD -R", "-c UD -e -x {gid6}", "-c UD -g",
                    "-c XRC", "-c XRC -e", "-c XRC -I 64"),
    "ib_write_lat": ("-n 50", "-c XRC -n 50", "-R -n 50", "-I 0 -n 50", "-c UC -n 50", "-D 1"),
    "ib_read_lat": ("", "-e", "-R", "-R -e", "-s 3000 -m 256", "-x {gid6}", "-o 1", "-c XRC", "-D 1"),
    "ib_atomic_lat": ("", "-e", "-c XRC", "-R", "-R -e", "-x {gid6}", "-A CMP_AND_SWAP", "-D 1"),
}
LATENCY_LONG = {
    "ib_send_lat": ("-R -T 96", "-R -D 1", "-R -m 512 -s 3000", "-c UD -R -e", "-r 5", "-H -U", "-C", "-z", "--use_old_post_send", "--inline_recv=64", "--latency_gap=100",
                    "-s 1", "-s 1048577 -n 20", "-a -n 20"),
    "ib_write_lat": ("-n 50 -R -T 96", "-R -D 1", "-n 50 -x {gid6}", "-n 50 -m 256 -s 3000", "-n 50 -H -U", "-n 50 -z", "-n 50 -I 100", "-a -n 5"),
    "ib_read_lat": ("-R -T 96", "-R -D 1", "-R -m 512 -s 3000", "-z", "--odp", "-H -U", "-C", "--use_old_post_send", "-s 1", "-s 1048577 -n 20", "-a -n 20"),
    "ib_atomic_lat": ("-R -T 96", "-R -D 1", "-R -A CMP_AND_SWAP", "-z", "-H -U", "-C", "--use_old_post_send"),
}

FIGURE = r"(?:[0-9.]+|-?nan|-?inf)"
ROW = re.compile(rf"^ *(\d+) +(\d+)((?:[ \t]+{FIGURE})+)[ \t]*$", re.MULTILINE)
ALL_SIZES = [1 << power for power in range(1, 24)]  # -a


def rows_of(text):
    """(bytes, iterations, figures) of each row below the table's head."""
    below = text.partition("#bytes")[2]
    return [(int(size), int(count), [float(f) for f in figures.split()]) for size, count, figures in ROW.findall(below)]


def value_of(more, option, default):
    words = more.split()
    return int(words[words.index(option) + 1]) if option in words else default


def check_rows(role, text, wanted):
    """wanted: (bytes, iterations) of each row; no number of iterations where the time decides."""
    rows = rows_of(text)
    got = [(size, None if wanted[0][1] is None else count) for size, count, _ in rows]
    if got != wanted:
        raise Failure(f"{role} printed rows of {got}, not of {wanted}")
    # perftest takes the processor's frequency anew for each table; where noise spoils that, it says so and has no figures.
    has_clock = "Correlation coefficient" not in text
    for size, count, figures in rows:
        # Of seven, the fifth is the standard deviation, in which perftest overflows where figures are large.
        judged = figures[:4] + figures[5:] if len(figures) == 7 else figures
        if count < 1 or has_clock and not (all(math.isfinite(figure) and figure >= 0 for figure in judged) and any(judged)):
            raise Failure(f"{role} printed figures that cannot be: {size} {count} {figures}")


def pair(program, more, size, iterations, **rest):
    size, iterations = value_of(more, "-s", size), value_of(more, "-n", iterations)
    is_bandwidth = program.endswith("_bw")
    is_atomic = program.startswith("ib_atomic")
    is_timed = "-D" in more.split()
    command = f"{program} -F -p {{port}} {more}"
    if "-a" not in more.split() and "-s" not in more.split() and not is_atomic:
        command += f" -s {size}"
    if "-n" not in more.split() and not is_timed:
        command += f" -n {iterations}"
    count = None if is_timed else iterations * (value_of(more, "-q", 1) if is_bandwidth else 1)
    sizes = ALL_SIZES if "-a" in more.split() else [8 if is_atomic else size]
    wanted = [(each, count) for each in sizes]

    def check(server, client):
        check_rows("client", client, wanted)
        # The target of what is one-sided has nothing to measure; those of some programs repeat the last row.
        if program.startswith("ib_send"):
            check_rows("server", server, wanted)

    ready = "udp" if {"-R", "-z"} & set(more.split()) else "tcp"
    name = rest.pop("name", f"{program} {more}".strip().replace("{gid6}", "N").replace("{server}", "ADDRESS"))
    return Pair(name, command, command + " {server}", ready, check=check, bound=90, pcap=False, **rest)


def matrix(bandwidth, latency, **rest):
    for program, variants in bandwidth.items():
        for more in variants:
            yield pair(program, more, 4096, 200, **rest)
    for program, variants in latency.items():
        for more in variants:
            yield pair(program, more, 64, 200, **rest)


def without_launcher():
    yield pair("ib_send_lat", "", 64, 500, launch="library_path", name="ib_send_lat by LD_LIBRARY_PATH alone")
    yield pair("ib_send_bw", "", 65536, 500, launch="library_path", name="ib_send_bw by LD_LIBRARY_PATH alone")


def table():
    return [*matrix(BANDWIDTH, LATENCY), *without_launcher(), *matrix(BANDWIDTH_LONG, LATENCY_LONG, is_long=True)]

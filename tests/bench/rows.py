# SPDX-License-Identifier: MIT
"""The table: which figure of which contender stands beside which other, and what is to be reached. A group of contenders
runs in turn, round after round (A B C A B C ...), so that a machine that is busy for a while is so for all of them."""
import dataclasses
import statistics
import typing

from contenders import FiPingpong, Idle, Incast, Raw, Ucx, perftest_bandwidth, perftest_latency
from contenders import BANDWIDTH, LATENCY, ONE_CORE, RATE, UNPINNED

NOISY_SPREAD = 0.15  # interquartile range of the peer's figures, of their median
UCX_ROW = r"^(?:Final:)?\s+\d+\s+"  # iterations; then latency or overhead (median, average, overall), bandwidth, rate
MIN_FOR_SPREAD = 3  # rounds
MET, MISSED, UNCLEAR = "met", "not met", "too noisy to tell"


@dataclasses.dataclass
class Row:
    key: str
    ours: typing.Any  # contender
    figure: str
    peer: typing.Any = None  # none: the figure itself is held against the reach
    peer_figure: str = ""
    at_most: float | None = None
    at_least: float | None = None
    ahead: bool = False  # the reach itself is not enough

    def unit(self):
        return self.ours.figures[self.figure][0]

    def reach(self):
        sign = ("<" if self.at_most is not None else ">") + ("" if self.ahead else "=")
        return f"{sign} {self.at_most if self.at_most is not None else self.at_least:g}"

    def is_within(self, value):
        limit = self.at_most if self.at_most is not None else self.at_least
        if value == limit:
            return not self.ahead
        return value < limit if self.at_most is not None else value > limit


@dataclasses.dataclass
class Group:
    contenders: list
    rows: list


@dataclasses.dataclass
class Effort:
    """How long each program runs."""

    round_trips: int
    slow_round_trips: int  # where one takes a millisecond, or tens of microseconds
    megabytes: int
    messages: int
    queue_pairs: int

    @classmethod
    def full(cls):
        return cls(20000, 1000, 500, 500000, 4000)

    @classmethod
    def quick(cls):
        return cls(5000, 200, 200, 100000, 1000)


def groups(effort):
    return [latency(effort), events(effort), large_round_trips(effort), bandwidth(effort, 65536),
            bandwidth(effort, 1048576), messages(effort), queue_pairs(effort), incast(effort), idle(effort)]


def raw_pingpong(options, size, count):
    return Raw(f"raw_udp_pingpong {options}{size} {count}", {"typical": (LATENCY, 1, r"_us ([0-9.]+)")})


def latency(effort):
    n, few = effort.round_trips, effort.slow_round_trips
    # BTH 12, RETH 16 for a write, payload 64, ICRC 4.
    raw, raw_write = raw_pingpong("", 80, n), raw_pingpong("", 96, n)
    send = perftest_latency(f"ib_send_lat -s 64 -n {n}", 64)
    write = perftest_latency(f"ib_write_lat -s 64 -n {few}", 64, UNPINNED)
    write_pinned = perftest_latency(f"ib_write_lat -s 64 -n {few}", 64)
    one_core = perftest_latency(f"ib_send_lat -s 64 -n {few}", 64, ONE_CORE)
    ucx = Ucx("tag_lat", f"-s 64 -n {n} -w 1000",
              {"typical": (LATENCY, 1, UCX_ROW + r"([0-9.]+)"), "average": (LATENCY, 1, UCX_ROW + r"\S+\s+\S+\s+([0-9.]+)")})
    libfabric = FiPingpong(64, n)
    return Group([raw, send, raw_write, write, write_pinned, one_core, ucx, libfabric], [
        Row("send_lat", send, "typical", raw, "typical", at_most=1.3),
        Row("write_lat", write, "typical", raw_write, "typical", at_most=4),
        Row("write_lat_pinned", write_pinned, "typical", raw_write, "typical", at_most=4),
        Row("one_core", one_core, "typical", send, "typical", at_most=15),
        Row("send_lat_ucx", send, "typical", ucx, "typical", at_most=1, ahead=True),
        Row("send_lat_ucx_average", send, "average", ucx, "average", at_most=1, ahead=True),
        Row("send_lat_libfabric", send, "average", libfabric, "average", at_most=1, ahead=True),
    ])


def events(effort):
    n = effort.round_trips // 4
    raw, raw_pinned = raw_pingpong("--blocking --unpinned ", 80, n), raw_pingpong("--blocking ", 80, n)
    send = perftest_latency(f"ib_send_lat -s 64 -e -n {n}", 64, UNPINNED)
    send_pinned = perftest_latency(f"ib_send_lat -s 64 -e -n {n}", 64)
    return Group([raw, send, raw_pinned, send_pinned], [
        Row("send_lat_events", send, "typical", raw, "typical", at_most=1.8),
        Row("send_lat_events_pinned", send_pinned, "typical", raw_pinned, "typical", at_most=1.8),
    ])


def large_round_trips(effort):
    n = effort.slow_round_trips * 2
    send, libfabric = perftest_latency(f"ib_send_lat -s 65536 -n {n}", 65536), FiPingpong(65536, n)
    return Group([libfabric, send],
                 [Row("send_lat_64k_libfabric", send, "average", libfabric, "average", at_most=1, ahead=True)])


def bandwidth(effort, size):
    """Full packets at path MTU 4096: BTH 12, payload 4096, ICRC 4."""
    label = {65536: "64k", 1048576: "1m"}[size]
    count = max(100, (effort.megabytes << 20) // size)
    per_second = {"bandwidth": (BANDWIDTH, 1, r"mebibytes_per_second ([0-9.]+)")}
    raw = Raw(f"raw_udp_stream {effort.megabytes} 4112", per_second)
    tcp = Raw(f"raw_tcp_stream {effort.megabytes} {size}", per_second, has_buffers=False)
    programs = {verb: perftest_bandwidth(f"ib_{verb}_bw -s {size} -n {count}", size) for verb in ("send", "write", "read")}
    rows = [Row(f"{verb}_bw_{label}", ours, "bandwidth", raw, "bandwidth", at_least=0.8) for verb, ours in programs.items()]
    rows += [Row(f"{verb}_bw_{label}_tcp", ours, "bandwidth", tcp, "bandwidth", at_least=1) for verb, ours in programs.items()]
    contenders = [raw, programs["send"], tcp, programs["write"], programs["read"]]
    if size == 65536:
        ucx = Ucx("ucp_put_bw", f"-s {size} -n {count // 4} -w 100", {"bandwidth": (BANDWIDTH, 1, UCX_ROW + r"(?:\S+\s+){4}([0-9.]+)")})
        contenders.append(ucx)
        rows.append(Row("write_bw_ucx", programs["write"], "bandwidth", ucx, "bandwidth", at_least=1, ahead=True))
    return Group(contenders, rows)


def messages(effort):
    megabytes = max(1, effort.messages * 80 >> 20)
    raw = Raw(f"raw_udp_stream --messages {megabytes} 80", {"rate": (RATE, 1, r"datagrams_per_second ([0-9.]+)")})
    send = perftest_bandwidth(f"ib_send_bw -s 64 -n {effort.messages}", 64)
    return Group([raw, send], [Row("message_rate", send, "rate", raw, "rate", at_least=0.7)])


def queue_pairs(effort):
    count = (effort.megabytes << 20) // 65536
    one = perftest_bandwidth(f"ib_send_bw -s 65536 -q 1 -n {count}", 65536)
    many = perftest_bandwidth(f"ib_send_bw -s 65536 -q 64 -n {max(20, count // 64)}", 65536)
    return Group([one, many], [Row("queue_pairs_64", many, "bandwidth", one, "bandwidth", at_least=0.8)])


def incast(effort):
    """That many senders do not livelock: a tenth of what one carries would be a working network still."""
    one, many = Incast(1, effort.megabytes), Incast(32, effort.megabytes)
    return Group([one, many], [Row("incast_32", many, "bandwidth", one, "bandwidth", at_least=0.1)])


def idle(effort):
    alone, some = Idle(0), Idle(effort.queue_pairs)
    return Group([alone, some], [
        Row("idle_wakeups", alone, "wakeups", at_most=0),
        Row("idle_wakeups_connected", some, "wakeups", at_most=0),
        Row("queue_pair_memory", some, "memory", at_most=8192),
    ])


def median(figures):
    return statistics.median(figures)


def spread(figures):
    """Interquartile range, of the median."""
    if len(figures) < MIN_FOR_SPREAD or not median(figures):
        return 0.0
    low, _, high = statistics.quantiles(figures, n=4, method="inclusive")
    return (high - low) / median(figures)


def result(row, figures, load):
    """figures(contender, name) gives those of all rounds. What the table says of the row."""
    ours = figures(row.ours, row.figure)
    values = {"row": row.key, "what": row.ours.name, "figure": row.figure, "unit": row.unit(), "reach": row.reach(),
              "median": median(ours), "spread": spread(ours), "rounds": ours}
    noise = load.complaints()
    if row.peer is None:
        values |= {"ratio": None, "verdict": MET if row.is_within(median(ours)) else MISSED, "noise": noise}
        return values
    theirs = figures(row.peer, row.peer_figure)
    ratio = median(ours) / median(theirs)
    by_round = sorted(a / b for a, b in zip(ours, theirs))
    if spread(theirs) > NOISY_SPREAD:
        noise.append(f"the peer's own figures are {spread(theirs):.0%} apart")
    is_split = row.is_within(by_round[0]) != row.is_within(by_round[-1])
    verdict = UNCLEAR if noise and is_split else MET if row.is_within(ratio) else MISSED
    return values | {"peer": row.peer.name, "peer_median": median(theirs), "peer_spread": spread(theirs),
                     "peer_rounds": theirs, "ratio": ratio, "ratio_lowest": by_round[0], "ratio_highest": by_round[-1],
                     "verdict": verdict, "noise": noise}

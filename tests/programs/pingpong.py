# SPDX-License-Identifier: MIT
"""Pairs of the examples of libibverbs: a message back and forth, over each transport, in each way to wait, to post, to
register memory. With -c the program itself checks what it has received."""
from pairs import Pair


def pair(program, more, iterations, name=None, **rest):
    command = f"{program} -p {{port}} -n {iterations} {more}"
    printed = (r"bytes in [0-9.]+ seconds = ", rf"^{iterations} iters in ")
    shown = more.replace("{gid}", "0").replace("{gid6}", "N")
    return Pair(name or f"{program} {shown}", command, command + " {server}", "tcp", printed, printed, **rest)


def reliable():
    yield pair("ibv_rc_pingpong", "-g {gid}", 1000)
    yield pair("ibv_rc_pingpong", "-g {gid} -e", 500)
    yield pair("ibv_rc_pingpong", "-g {gid} -c", 200)
    yield pair("ibv_rc_pingpong", "-g {gid6} -c", 200, name="ibv_rc_pingpong over IPv6")
    yield pair("ibv_rc_pingpong", "-g {gid6} -e -c -s 9000", 50, is_long=True)
    for mtu in (256, 512, 1024):
        yield pair("ibv_rc_pingpong", f"-g {{gid}} -m {mtu} -c", 200)
    yield pair("ibv_rc_pingpong", "-g {gid} -e -c -s 100000 -m 256", 50)
    for size in (1, 2, 255, 256, 257, 1023, 1024, 1025, 4097, 65536, 1 << 20):
        yield pair("ibv_rc_pingpong", f"-g {{gid}} -c -r 20 -s {size}", 50 if size < 100000 else 20)
    yield pair("ibv_rc_pingpong", "-g {gid} -l 3 -i 1 -d nicless0 -c", 100)
    yield pair("ibv_rc_pingpong", "-g {gid} -r 1 -c", 100)
    yield pair("ibv_rc_pingpong", "-c", 200, name="ibv_rc_pingpong by LID", options=("--lids",))
    yield pair("ibv_rc_pingpong", "-g {gid}", 1000, name="ibv_rc_pingpong by LD_LIBRARY_PATH alone",
               launch="library_path")


def builders():
    """-N: the ibv_wr_* functions instead of ibv_post_send."""
    yield pair("ibv_rc_pingpong", "-g {gid} -N -c", 200)
    yield pair("ibv_rc_pingpong", "-g {gid} -N -e -c", 100)
    yield pair("ibv_rc_pingpong", "-g {gid} -N -c -r 20 -s 100000", 20)


def timestamps():
    """-t: an extended CQ, whose completions say when they were made. Not with -e: the program then takes an event whose
    completion it has polled already for an error ("poll CQ failed 2"), and verbs allow such events."""
    yield pair("ibv_rc_pingpong", "-g {gid} -t -c", 200)
    yield pair("ibv_rc_pingpong", "-g {gid} -t -N -c", 100)


def memory():
    """Regions on demand (-o), of the whole address space (-O), prefetched (-P); device memory (-j)."""
    for more in ("-o -c", "-O -c", "-o -P -e -c", "-O -P -c", "-j -c", "-j -N -c -s 1000"):
        yield pair("ibv_rc_pingpong", f"-g {{gid}} {more}", 100)
    yield pair("ibv_srq_pingpong", "-g {gid} -o -c -q 2", 100)


def shared_receive_queue():
    """Sixteen queue pairs receive from one queue, unless -q says otherwise."""
    yield pair("ibv_srq_pingpong", "-g {gid}", 200)
    yield pair("ibv_srq_pingpong", "-g {gid} -e", 100)
    yield pair("ibv_srq_pingpong", "-g {gid} -e -c -q 2 -m 512", 100)
    yield pair("ibv_srq_pingpong", "-g {gid} -c -q 4 -s 9000", 100)
    yield pair("ibv_srq_pingpong", "-g {gid} -c -q 1 -r 1", 100)
    yield pair("ibv_srq_pingpong", "-g {gid6} -c -q 3", 100)
    yield pair("ibv_srq_pingpong", "-g {gid} -c -q 2 -r 20 -s 65536", 20, is_long=True)


def unreliable():
    """One message is under way at a time, so none is lost."""
    yield pair("ibv_uc_pingpong", "-g {gid}", 200)
    yield pair("ibv_uc_pingpong", "-g {gid} -c", 200)
    yield pair("ibv_uc_pingpong", "-g {gid} -e -c", 100)
    yield pair("ibv_uc_pingpong", "-g {gid} -c -m 256 -s 9000", 50)
    yield pair("ibv_uc_pingpong", "-g {gid} -c -s 1", 50)
    yield pair("ibv_uc_pingpong", "-g {gid6} -c", 100)
    yield pair("ibv_ud_pingpong", "-g {gid}", 200)
    yield pair("ibv_ud_pingpong", "-g {gid} -c -s 1000", 200)
    yield pair("ibv_ud_pingpong", "-g {gid} -e -c -s 1024", 100)
    yield pair("ibv_ud_pingpong", "-g {gid} -c -s 1 -r 2", 100)
    yield pair("ibv_ud_pingpong", "-g {gid6} -c -s 1000", 100)


def extended():
    """XRC: one client, as the SRQs of several would have to be in one process (docs/adr/0010)."""
    for more in ("", "-n 200", "-n 200 -e", "-n 50 -e -m 512 -s 9000", "-n 20 -s 100000", "-n 20 -s 1"):
        command = f"ibv_xsrq_pingpong -p {{port}} -g {{gid}} {more}"
        printed = (r"^success$",)
        yield Pair(f"ibv_xsrq_pingpong {more}".strip(), command, command + " {server}", "tcp", printed, printed)


def table():
    return [*reliable(), *builders(), *timestamps(), *memory(), *shared_receive_queue(), *extended(), *unreliable()]

# SPDX-License-Identifier: MIT
"""A pair of programs: what is run on both ends, how one sees that the server is ready, what has to be printed. The
tables of them are in rdmacm.py, pingpong.py, perftest.py and libfabric.py, and serve loopback and the two namespaces.

In arguments, {port} is a free port, {server} and {server6} are the server's addresses, {client} and {client6} the
client's, {gid} and {gid6} are indexes of an IPv4 and an IPv6 GID in the device's table.
"""
import dataclasses
import re
import shutil
import typing

from harness import Failure, Skip
from single import gid_indexes

# What a program says when something is wrong, and what the libraries say.
COMPLAINT = re.compile(r"^nicless:|\berror|\bfail|\bunable\b|\bcannot\b|\bcould ?n[o']t\b|\bmismatch|\binvalid\b|\bunexpected\b",
                       re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A server and its clients, one after the other. Patterns are searched line by line in each output."""

    name: str
    server: str
    client: str
    ready: str  # "udp" or "tcp": the server has bound {port}
    server_prints: tuple = ()
    client_prints: tuple = ()
    check: typing.Callable = lambda server, client: None  # of both outputs; raises Failure
    server_status: int = 0
    clients: int = 1  # so many, one after the other
    is_persistent: bool = False  # the server does not end by itself: it is still there after the last client
    launch: str = "launcher"
    pcap: bool = True
    bound: int = 30  # seconds, for the whole exchange
    options: tuple = ()  # of nicless run
    env: tuple = ()  # (name, value) of both ends
    is_long: bool = False  # run with --long only
    ready_port: int = 0  # tells that the server is ready, and others have it, too; 0: {port} does
    needs: str = ""  # a program that may not be installed
    only_on: str = ""  # the one world that has what it needs
    port: int = 0  # the one that the programs use; 0: any free one, which they are told
    complaints: str = "(?!)"  # a pattern: lines that it matches are no complaint of this pair


def case_of(pair):
    """The pair as a case: a function of the world."""
    return lambda world: run_pair(world, pair)


def run_pair(world, pair):
    """Runs both ends; raises Failure where a claim does not hold."""
    if pair.needs and not shutil.which(pair.needs):
        raise Skip(f"{pair.needs} is not installed")
    port = world.certain_port(pair.port) if pair.port else world.free_port()
    if pair.ready_port:
        world.certain_port(pair.ready_port, alone=False)
    values = dict(port=port, server=world.address, server6=world.address6, client=world.client,
                  client6=world.client6)
    if "{gid" in pair.server:
        values.update(zip(("gid", "gid6"), world.once(gid_indexes)))

    def command(text):
        return text.format(**values).split()

    how = dict(launch=pair.launch, pcap=pair.pcap, options=pair.options, env=dict(pair.env))
    server = world.start("server", command(pair.server), host="a", **how)
    server.wait_port(pair.ready, pair.ready_port or port, world.bound(10))
    for number in range(pair.clients):
        role = "client" if pair.clients == 1 else f"client{number + 1}"
        client = world.start(role, command(pair.client), host="b", **how)
        client.expect_end(world.bound(pair.bound), 0, pair.client_prints)
    if pair.is_persistent:
        server.expect_running()
    else:
        server.expect_end(world.bound(pair.bound), pair.server_status, pair.server_prints)
    pair.check(server.text, client.text)
    for process in world.processes:
        expect_no_complaint(process, pair.complaints)


def expect_no_complaint(process, excepted):
    for line in process.text.splitlines():
        if COMPLAINT.search(line) and not re.search(excepted, line):
            raise Failure(f"{process.role} complains: {line}")

# SPDX-License-Identifier: MIT
"""Our own program for the two ends of a connection (tests/softroce/exchange), which knows what each has to see: here between
nicless and nicless."""
import functools
import subprocess

KILLED = {"requester-killed": "client", "responder-killed": "server"}  # the end that kills itself


def scenarios(program):
    return subprocess.run([program, "list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def scenario(world, name):
    port = world.free_port()
    program = world.options.exchange
    server = world.start("server", [program, "respond", world.address, port, name])
    server.wait_port("udp", port, world.bound(10))
    client = world.start("client", [program, "request", world.address, port, name], host="b")
    for end in (client, server):
        if end.role == KILLED.get(name):
            end.expect_end(world.bound(30), end.KILLED)
        else:
            end.expect_end(world.bound(30), 0, (r"^as expected, at path MTU \d+$",))


def table(world):
    return [(f"exchange {name}", functools.partial(scenario, name=name)) for name in scenarios(world.options.exchange)]

#!/bin/sh
# SPDX-License-Identifier: MIT
# A step of a CI job: a client and a server are tested for what happens on a bad network and when the peer is gone.
# rping, of Debian's rdmacm-utils, stands for the program under test. docs/FAULTS.md explains it.
set -eu
port=${PORT:-7471}
server() { # FAULTS...: in the background, ready when its UDP port is bound
  nicless run "$@" -- rping -s -a 127.0.0.1 -p "$port" -C 20 -V >server.log 2>&1 &
  until grep -qi ":$(printf %04x "$port") " /proc/net/udp /proc/net/udp6; do sleep 0.1; done
}
client() { # FAULTS...
  timeout 60 nicless run "$@" -- rping -c -a 127.0.0.1 -p "$port" -C 20 -V >client.log 2>&1
}

# Both ends lose, reorder and corrupt what they send; each message has to arrive, once and intact.
faults='--loss 2% --reorder 2% --corrupt 0.5% --seed 7'
server $faults
client $faults
wait $!
echo 'survives a bad network'

# The third send fails as if the peer had vanished: the client has to say so.
server
client --fail 3:RETRY_EXC_ERR || true
grep -q 'completion failed status 12' client.log
wait $! || true
echo 'notices that its peer is gone'

# SPDX-License-Identifier: MIT
# What tools/demo and tools/check need from Debian 12, and why. Sourced by both, with `set -eu` in force.

# To build: compilers, Meson, header-only Boost (Result, small_vector), ISA-L (the CRC; its shared library comes along), rdma-core's headers and
# link libraries (the interface that nicless implements).
build_packages="gcc g++ meson ninja-build pkgconf python3 libboost1.81-dev libisal-dev libibverbs-dev librdmacm-dev"
# The programs of the demo: rping, rdma_server, ucmatose; ibv_rc_pingpong, ibv_devices.
demo_packages="rdmacm-utils ibverbs-utils"
# To test: Catch2; clang's compiler, formatter, linter and fuzzer; perftest, qperf, pyverbs and libfabric's ping-pong; tshark, which reads our captures;
# ip(8) for the network namespaces.
check_packages="catch2 clang clang-format clang-tidy libclang-rt-14-dev perftest qperf libfabric-bin python3-pyverbs tshark iproute2 git"
# To test against the Linux kernel's Soft-RoCE: the machine that emulates it, and what its disk is made with.
softroce_packages="qemu-system-x86 cpio zstd xz-utils binutils iproute2"

# Those of the packages named that are not installed.
missing_packages() {
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf ' %s' "$package"
  done
}

# Installs what is missing of the packages named, by sudo if not root; does nothing if all are there.
ensure_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian: nothing is installed. The packages' names there: $*"
    return 0
  fi
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "Not root and no sudo: install these first: apt-get install$missing" >&2
      return 1
    }
    as_root=sudo
  fi
  echo "Installing with apt-get:$missing"
  log=$(mktemp)
  # libboost1.81-dev takes the place of another libboost-dev if one is installed: -y agrees to that.
  # shellcheck disable=SC2086  # the list is meant to be split
  if { $as_root apt-get update -q &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -q -y --no-install-recommends $missing; } \
    >"$log" 2>&1 </dev/null; then
    rm -f "$log"
  else
    tail -n 20 "$log" >&2
    rm -f "$log"
    echo "apt-get could not install:$missing" >&2
    return 1
  fi
}

// SPDX-License-Identifier: MIT
// Writes golden packets as a trace of ours, for tshark_test.py:   golden_to_pcapng OUT.pcapng NAME...
// Ports are changed to ones of ours and the ICRC with them, as if nicless had sent the packets.
#include <cstdio>
#include <fstream>

#include "tests/support/golden.h"
#include "wire/packet/icrc.h"
#include "wire/packet/pcapng.h"

using namespace nicless;
using namespace nicless::wire;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<std::byte> out;
  append_pcapng_start(out);
  std::uint64_t time_ns = 1'700'000'000'000'000'000;
  for (int i = 2; i < argc; ++i) {
    for (test::GoldenPacket& golden : test::golden_packets(argv[i])) {
      golden.to.port = 40002;
      store_icrc(compute_icrc({golden.bytes, golden.from, golden.to}, golden.ip_id),
                 std::span(golden.bytes).last(kIcrcBytes));
      append_pcapng({time_ns += 1000, i % 2 == 0, golden.from, golden.to, {}, golden.bytes}, out);
    }
  }
  std::ofstream file(argv[1], std::ios::binary);
  file.write(static_cast<const char*>(static_cast<const void*>(out.data())), static_cast<std::streamsize>(out.size()));
  file.close();
  return file ? 0 : 1;
}

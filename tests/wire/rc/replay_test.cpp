// SPDX-License-Identifier: MIT
// Goal: a duplicate read is recognised whole or from any packet on, and nothing else is.
// Method: one read of known range, asked about from every side.
#include "wire/rc/replay.h"

#include <catch2/catch.hpp>

using nicless::queue::RKey;
using nicless::wire::Replay;
using nicless::wire::Reth;

namespace {

constexpr std::uint32_t kMtu = 1024;
constexpr Reth kRead{0x1000, RKey(7), 4001};

Replay with_one_read() {
  Replay replay;
  replay.start(2);
  replay.add({100, 4, kRead});
  return replay;
}

}  // namespace

TEST_CASE("a read is found whole and from each of its packets on", "[rc][replay]") {
  const Replay replay = with_one_read();
  CHECK(replay.find(100, kRead, kMtu) != nullptr);
  CHECK(replay.find(102, Reth{0x1000 + 2048, RKey(7), 4001 - 2048}, kMtu) != nullptr);
  CHECK(replay.find(103, Reth{0x1000 + 3072, RKey(7), 929}, kMtu) != nullptr);
  CHECK(replay.find(101, Reth{0x1000 + 1024, RKey(7), 1024}, kMtu) != nullptr);  // a piece of the rest
}

TEST_CASE("a request that is not part of the read that has this PSN is not found", "[rc][replay]") {
  const Replay replay = with_one_read();
  CHECK(replay.find(99, kRead, kMtu) == nullptr);
  CHECK(replay.find(104, kRead, kMtu) == nullptr);
  CHECK(replay.find(101, kRead, kMtu) == nullptr);                               // address not advanced
  CHECK(replay.find(100, Reth{0x1000, RKey(8), 4001}, kMtu) == nullptr);         // another key
  CHECK(replay.find(100, Reth{0x1000, RKey(7), 4002}, kMtu) == nullptr);         // longer
  CHECK(replay.find(102, Reth{0x1000 + 2048, RKey(7), 4001}, kMtu) == nullptr);  // past its end
}

TEST_CASE("a replay store that is resized keeps the newest requests", "[rc][replay]") {
  Replay replay;
  replay.start(2);
  for (const std::uint64_t psn : {100, 104, 108}) replay.add({psn, 4, kRead});
  replay.resize(4);
  CHECK(replay.find(104, kRead, kMtu) != nullptr);
  CHECK(replay.find(108, kRead, kMtu) != nullptr);
  replay.add({112, 4, kRead});
  replay.add({116, 4, kRead});
  CHECK(replay.find(104, kRead, kMtu) != nullptr);
  replay.resize(1);
  CHECK(replay.find(112, kRead, kMtu) == nullptr);
  CHECK(replay.find(116, kRead, kMtu) != nullptr);
  replay.add({120, 4, kRead});
  CHECK(replay.find(116, kRead, kMtu) == nullptr);
}

TEST_CASE("only the last reads are remembered, as many as max_dest_rd_atomic", "[rc][replay]") {
  Replay replay = with_one_read();
  replay.add({104, 4, kRead});
  CHECK(replay.find(100, kRead, kMtu) != nullptr);
  replay.add({108, 4, kRead});
  CHECK(replay.find(100, kRead, kMtu) == nullptr);
  CHECK(replay.find(104, kRead, kMtu) != nullptr);
  CHECK(replay.find(108, kRead, kMtu) != nullptr);
}

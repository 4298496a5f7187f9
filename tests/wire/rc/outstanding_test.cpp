// SPDX-License-Identifier: MIT
// Goal: any unacknowledged PSN leads back to its work request and packet, also where the ring of records has wrapped.
// Method: a ring of four work requests of known sizes, walked PSN by PSN.
#include "wire/rc/outstanding.h"

#include <catch2/catch.hpp>
#include <vector>

using nicless::wire::Outstanding;

TEST_CASE("PSNs are given out in the order of the send queue, a message's packets in a row", "[rc][outstanding]") {
  Outstanding outstanding;
  outstanding.start(4, 10, 1000);
  CHECK(outstanding.begin(3, false).first_psn == 1000);
  CHECK(outstanding.begin(1, true).first_psn == 1003);
  CHECK(outstanding.begun_seq() == 12);
  CHECK(outstanding.end_psn() == 1004);
  CHECK_FALSE(outstanding.at(10).is_unanswered());
  CHECK(outstanding.at(11).is_unanswered());
  outstanding.at(11).answered = 1;
  CHECK_FALSE(outstanding.at(11).is_unanswered());
}

TEST_CASE("every PSN is found where it was given out", "[rc][outstanding]") {
  Outstanding outstanding;
  const std::vector<std::uint64_t> packets = {3, 1, 5, 1, 2, 7};
  outstanding.start(4, 0, 0xffffff);
  std::uint64_t first_seq = 0;
  for (std::uint64_t seq = 0; seq < packets.size(); ++seq) {
    outstanding.begin(packets[seq], false);
    first_seq = seq >= 3 ? seq - 3 : 0;  // the ring holds four
  }
  std::uint64_t psn = outstanding.at(first_seq).first_psn;
  for (std::uint64_t seq = first_seq; seq < packets.size(); ++seq) {
    for (std::uint64_t packet = 0; packet < packets[seq]; ++packet, ++psn) {
      const auto position = outstanding.find(first_seq, psn);
      CHECK(position.seq == seq);
      CHECK(position.packet == packet);
    }
  }
  const auto end = outstanding.find(first_seq, psn);
  CHECK(end.seq == packets.size());
  CHECK(end.packet == 0);
}

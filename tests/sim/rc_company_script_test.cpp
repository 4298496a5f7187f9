// SPDX-License-Identifier: MIT
// Goal: short messages leave one by one while few are unanswered, and together while many are; none waits for ever, and
// what is long does not wait at all. Method: an ExactPair; what leaves after each post is counted.
#include <catch2/catch.hpp>

#include "tests/sim/script.h"
#include "wire/rc/requester.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;

constexpr std::uint64_t kCompany = wire::Requester::kCompanyMin;

struct Company : Script {
  Company() {
    for (std::uint64_t i = 0; i < 4 * kCompany; ++i) post_recv(i, 200);
  }
  // How many packets leave when one message more of so many bytes is posted.
  std::size_t post_and_count(std::size_t length) {
    post(SendOpcode::Send, next_wr_id++, length);
    return drain().size();
  }
  std::vector<Packet> drain() {
    const std::vector<Packet> packets = take(a);
    under_way.insert(under_way.end(), packets.begin(), packets.end());
    return packets;
  }
  // All that is under way arrives, and the answers come back.
  void exchange() {
    give_all(b, std::exchange(under_way, {}));
    give_all(a, take(b));
  }
  std::vector<Packet> under_way;
  std::uint64_t next_wr_id = 0;
};

TEST_CASE("a short message leaves at once while few are unanswered", "[rc][script][company]") {
  Company s;
  for (std::uint64_t i = 0; i < kCompany; ++i) CHECK(s.post_and_count(64) == 1);
}

TEST_CASE("behind many unanswered messages short ones leave together", "[rc][script][company]") {
  Company s;
  for (std::uint64_t i = 0; i < kCompany; ++i) s.post_and_count(64);
  for (std::uint64_t i = 1; i < kCompany; ++i) CHECK(s.post_and_count(64) == 0);
  CHECK(s.post_and_count(64) == kCompany);
}

TEST_CASE("short messages that wait for company leave when answers come", "[rc][script][company]") {
  Company s;
  for (std::uint64_t i = 0; i < kCompany + 3; ++i) s.post_and_count(64);
  s.exchange();
  CHECK(s.drain().size() == 3);
  s.exchange();
  CHECK(s.a.poll_send().size() == kCompany + 3);
  CHECK(s.is_at_rest());
}

TEST_CASE("when what short messages wait behind is lost, all are sent in the end", "[rc][script][company]") {
  Company s;
  for (std::uint64_t i = 0; i < kCompany + 3; ++i) s.post_and_count(64);
  s.under_way.clear();
  for (int tries = 0; tries < 20 && !s.a.send_queue().empty(); ++tries) {
    if (const auto deadline = s.a.engine().next_deadline()) s.now = std::max(s.now, *deadline);
    s.a.engine().on_deadline(s.now);
    s.drain();
    s.exchange();
  }
  CHECK(s.a.poll_send().size() == kCompany + 3);
}

TEST_CASE("a message of several packets waits for nobody, nor does a short one behind a few of them",
          "[rc][script][company]") {
  Company s;
  for (std::uint64_t i = 0; i < kCompany; ++i) s.post_and_count(64);
  CHECK(s.post_and_count(2 * kMtu) == 2);

  Company other;
  CHECK(other.post_and_count(20 * kMtu) == 20);
  CHECK(other.post_and_count(64) == 1);
}

}  // namespace
}  // namespace nicless::sim

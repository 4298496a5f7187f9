// SPDX-License-Identifier: MIT
// Goal: times on the wire mean what the standard says. Method: values from the standard and from captured REQs.
#include "cm/timeouts.h"

#include <catch2/catch.hpp>

namespace nicless::cm {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST_CASE("a code stands for 4.096 us times a power of two", "[timeouts]") {
  CHECK(wire_time(0) == nanoseconds(4096));
  CHECK(wire_time(8) == nanoseconds(1048576));
  CHECK(wire_time(31) == nanoseconds(4096LL << 31));
  CHECK(wire_time(200) == wire_time(31));
}

TEST_CASE("the ACK timeout covers the round trip and the peer's delay", "[timeouts]") {
  CHECK(ack_timeout(15, 18) == 19);  // Linux 6.1
  CHECK(ack_timeout(15, 16) == 17);  // Linux 6.12
  CHECK(ack_timeout(15, 13) == 16);  // with RDMA_OPTION_ID_ACK_TIMEOUT 14
  CHECK(ack_timeout(15, 2) == 15);
  CHECK(ack_timeout(31, 31) == 31);
}

TEST_CASE("a message is sent again sooner at first, and never later than the peer may take", "[timeouts]") {
  const Instant start{};
  Resend resend = Resend::start(start, 15);
  Instant last = start;
  Duration interval = resend.deadline - last;
  CHECK(interval == Resend::kFirst);
  for (int i = 0; i < 15; ++i) {
    last = resend.deadline;
    resend.again(last, milliseconds(4800), 15);
    CHECK(resend.deadline - last == std::min<Duration>(2 * interval, milliseconds(4800)));
    interval = resend.deadline - last;
  }
  CHECK(resend.left == 0);
}

}  // namespace
}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
// Goal: an answer is expected of a program that has answered often enough in a row, promptly, and of no other.
// Method: a clock moved by hand.
#include "wire/io/conversation.h"

#include <catch2/catch.hpp>

using namespace nicless;
using namespace nicless::wire;
using namespace std::chrono_literals;

namespace {

struct Program {
  Conversation conversation;
  queue::Instant now{1s};

  bool receive() {
    now += 5us;
    return conversation.on_message(now);
  }
  void answer_after(queue::Duration time) {
    now += time;
    conversation.on_request(now);
  }
  void answer_often() {
    for (std::uint32_t i = 0; i < Conversation::kAnswersMin; ++i) {
      REQUIRE_FALSE(receive());
      answer_after(1us);
    }
  }
};

}  // namespace

TEST_CASE("an answer is expected after enough prompt answers in a row", "[conversation]") {
  Program program;
  program.answer_often();
  CHECK(program.receive());
}

TEST_CASE("one late answer ends the expectation, and it has to be earned anew", "[conversation]") {
  Program program;
  program.answer_often();
  REQUIRE(program.receive());
  program.answer_after(Conversation::kPrompt + 1ns);
  program.answer_often();
  CHECK(program.receive());
}

TEST_CASE("an answer at the limit of promptness counts", "[conversation]") {
  Program program;
  program.answer_often();
  REQUIRE(program.receive());
  program.answer_after(Conversation::kPrompt);
  CHECK(program.receive());
}

TEST_CASE("a message that the program did not answer ends the expectation", "[conversation]") {
  Program program;
  program.answer_often();
  REQUIRE(program.receive());
  program.conversation.on_other();
  CHECK_FALSE(program.receive());
}

TEST_CASE("requests and polls between messages say nothing", "[conversation]") {
  Program program;
  program.answer_often();
  program.conversation.on_other();
  program.answer_after(1s);
  program.conversation.on_other();
  CHECK(program.receive());
}

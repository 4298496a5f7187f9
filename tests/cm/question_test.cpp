// SPDX-License-Identifier: MIT
// Goal: a request is asked as often and as far apart as it should be, and no longer than that. Method: one question in
// virtual time, looked at whenever it wants to be.
#include "cm/question.h"

#include <catch2/catch.hpp>
#include <vector>

namespace nicless::cm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = Question::Verdict;

// When it is asked again, and how it ends.
struct Course {
  std::vector<Duration> asked;
  Verdict end = Verdict::Wait;
  Duration ended{};
};

Course run(Question& question) {
  Course course;
  for (;;) {
    const Instant now = question.deadline();
    CHECK(question.on_deadline(now - Duration(1)) == Verdict::Wait);
    const Verdict verdict = question.on_deadline(now);
    if (verdict == Verdict::Ask) {
      course.asked.push_back(now.time_since_epoch());
      continue;
    }
    course.end = verdict;
    course.ended = now.time_since_epoch();
    return course;
  }
}

TEST_CASE("what nobody answers is asked later and later, and given up", "[question]") {
  Question question({}, 4, seconds(1));
  const Course course = run(question);
  CHECK(course.asked ==
        std::vector<Duration>{milliseconds(200), milliseconds(600), milliseconds(1400), milliseconds(2400)});
  CHECK(course.end == Verdict::NoAnswer);
  CHECK(course.ended == milliseconds(3400));
}

TEST_CASE("a refusal is believed when three more questions have changed nothing", "[question]") {
  Question question({}, 15, seconds(4));
  question.on_refused({});
  question.on_refused(Instant(milliseconds(10)));  // said again: no news
  const Course course = run(question);
  CHECK(course.asked == std::vector<Duration>{milliseconds(20), milliseconds(100), milliseconds(300)});
  CHECK(course.end == Verdict::NobodyThere);
  CHECK(course.ended == milliseconds(400));
}

TEST_CASE("who is asked for patience has it, and forgets that it was refused", "[question]") {
  Question question({}, 1, seconds(4));
  question.on_refused({});
  question.wait_until(Instant(seconds(60)));
  const Course course = run(question);
  CHECK(course.asked == std::vector<Duration>{seconds(60)});
  CHECK(course.end == Verdict::NoAnswer);
}

}  // namespace
}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
// Goal: a program counts as one that goes away between polls when the thread came late for it, and no longer when its
// absences are in vain.
// Method: the value alone, told what happened.
#include "wire/io/poller_habit.h"

#include <catch2/catch.hpp>

using nicless::wire::PollerHabit;

namespace {

void give_signs(PollerHabit& habit, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) habit.on_found_waiting();
}

void return_in_vain(PollerHabit& habit, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) habit.on_return(false);
}

}  // namespace

TEST_CASE("one late service is chance, two are a habit", "[habit]") {
  PollerHabit habit;
  give_signs(habit, PollerHabit::kSignsNeeded - 1);
  CHECK_FALSE(habit.goes_away());
  give_signs(habit, 1);
  CHECK(habit.goes_away());
}

TEST_CASE("the habit ends with the last of so many absences in which nothing came", "[habit]") {
  PollerHabit habit;
  give_signs(habit, PollerHabit::kSignsNeeded);
  return_in_vain(habit, PollerHabit::kVainMax - 1);
  CHECK(habit.goes_away());
  habit.on_return(true);
  return_in_vain(habit, PollerHabit::kVainMax - 1);
  CHECK(habit.goes_away());
  return_in_vain(habit, 1);
  CHECK_FALSE(habit.goes_away());
}

TEST_CASE("each habit that ended in vain doubles the signs for the next, up to a limit", "[habit]") {
  PollerHabit habit;
  for (std::uint32_t needed = PollerHabit::kSignsNeeded; needed <= PollerHabit::kSignsNeededMax; needed *= 2) {
    give_signs(habit, needed - 1);
    REQUIRE_FALSE(habit.goes_away());
    give_signs(habit, 1);
    REQUIRE(habit.goes_away());
    return_in_vain(habit, PollerHabit::kVainMax);
  }
  give_signs(habit, PollerHabit::kSignsNeededMax);
  CHECK(habit.goes_away());
}

TEST_CASE("an absence that was of use makes the next habit as easy as the first", "[habit]") {
  PollerHabit habit;
  give_signs(habit, PollerHabit::kSignsNeeded);
  return_in_vain(habit, PollerHabit::kVainMax);
  give_signs(habit, 2 * PollerHabit::kSignsNeeded);
  habit.on_return(true);
  return_in_vain(habit, PollerHabit::kVainMax);
  // Doubled once, from the start.
  give_signs(habit, 2 * PollerHabit::kSignsNeeded);
  CHECK(habit.goes_away());
}

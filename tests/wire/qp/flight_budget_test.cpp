// SPDX-License-Identifier: MIT
// Goal: what may be in flight follows the socket buffer, and is shared among those that have something in flight.
// Method: numbers in, numbers out.
#include "wire/qp/flight_budget.h"

#include <catch2/catch.hpp>

namespace nicless::wire {
namespace {

TEST_CASE("what may be in flight follows the socket buffer, within limits", "[flight]") {
  CHECK(FlightBudget::bytes_for(0) == FlightBudget::kLeastBytes);
  CHECK(FlightBudget::bytes_for(212'992) == FlightBudget::kLeastBytes);
  CHECK(FlightBudget::bytes_for(4 << 20) == 512 * 1024);
  CHECK(FlightBudget::bytes_for(std::size_t{1} << 30) == FlightBudget::kMostBytes);
}

TEST_CASE("those that have something in flight share equally, and each has a least", "[flight]") {
  FlightBudget budget(1 << 20);
  CHECK(budget.share() == 1 << 20);
  budget.enter();
  CHECK(budget.share() == 1 << 20);
  budget.enter();
  CHECK(budget.share() == 1 << 19);
  for (int i = 2; i < 64; ++i) budget.enter();
  CHECK(budget.share() == FlightBudget::kLeastBytes);
  for (int i = 1; i < 64; ++i) budget.leave();
  CHECK(budget.share() == 1 << 20);
}

TEST_CASE("the least share is never more than all of it", "[flight]") {
  FlightBudget budget(4096);
  budget.enter();
  budget.enter();
  CHECK(budget.share() == 4096);
}

}  // namespace
}  // namespace nicless::wire

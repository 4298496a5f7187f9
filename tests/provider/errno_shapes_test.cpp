// SPDX-License-Identifier: MIT
// Goal: each shape gives its caller what the man pages promise, whatever the call did.
// Method: the shapes around lambdas that succeed, fail and throw.
#include "provider/errno_shapes.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <new>

using namespace nicless;
using namespace nicless::provider;
using queue::Result;

namespace {

constexpr int kUntouched = 1234;

Result<int*> refuse_pointer() {
  return queue::error(EAGAIN, "not now");
}
Result<void> refuse() {
  return queue::error(EAGAIN, "not now");
}
Result<int> refuse_number() {
  return queue::error(EAGAIN, "not now");
}

}  // namespace

TEST_CASE("success leaves errno alone", "[provider][shapes]") {
  int value = 5;
  errno = kUntouched;
  CHECK(null_and_errno("a", [&] { return Result<int*>(&value); }) == &value);
  CHECK(errno_itself("b", [] { return Result<void>(); }) == 0);
  CHECK(minus_one_and_errno("c", [] { return Result<void>(); }) == 0);
  CHECK(number_or_minus_one("d", [] { return Result<int>(7); }) == 7);
  CHECK(count_or_negative("e", [] { return Result<int>(3); }) == 3);
  CHECK(errno == kUntouched);
}

TEST_CASE("a call that makes something fails with NULL and errno", "[provider][shapes]") {
  CHECK(null_and_errno("a", refuse_pointer) == nullptr);
  CHECK(errno == EAGAIN);
}

TEST_CASE("a call that does something returns the errno value, and sets errno", "[provider][shapes]") {
  errno = 0;
  CHECK(errno_itself("b", refuse) == EAGAIN);
  CHECK(errno == EAGAIN);
}

TEST_CASE("a call that asks fails with -1 and errno", "[provider][shapes]") {
  CHECK(minus_one_and_errno("c", refuse) == -1);
  CHECK(errno == EAGAIN);
  errno = 0;
  CHECK(number_or_minus_one("d", refuse_number) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("a count fails with the errno value negated", "[provider][shapes]") {
  CHECK(count_or_negative("e", refuse_number) == -EAGAIN);
}

TEST_CASE("memory that is not to be had is ENOMEM, not an exception", "[provider][shapes]") {
  CHECK(errno_itself("b", []() -> Result<void> { throw std::bad_alloc(); }) == ENOMEM);
  CHECK(null_and_errno("a", []() -> Result<int*> { throw std::bad_alloc(); }) == nullptr);
  CHECK(errno == ENOMEM);
}

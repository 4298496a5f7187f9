// SPDX-License-Identifier: MIT
// NICLESS_CHECK aborts on a bug of ours in every build; NICLESS_DCHECK only where NICLESS_DCHECKS is defined (debug,
// simulation, fuzzing). The plain names belong to the test framework.
// Neither is for bad input: a caller's mistake is a Result, a peer's bad bytes are dropped and counted.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace nicless::queue {

[[noreturn]] inline void check_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr, "nicless: internal error at %s:%d: %s; please report this with what the program did\n", file,
               line, what);
  std::abort();
}

}  // namespace nicless::queue

#define NICLESS_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::nicless::queue::check_failed(#condition, __FILE__, __LINE__))
#ifdef NICLESS_DCHECKS
#define NICLESS_DCHECK(condition) NICLESS_CHECK(condition)
#else
#define NICLESS_DCHECK(condition) static_cast<void>(0)
#endif

// SPDX-License-Identifier: MIT
// The mistakes that a program can make, one a row, in the order in which docs/ERRORS.md lists them.
#pragma once

#include <string>
#include <vector>

#include "tests/provider/bad_input/bench.h"

namespace nicless::test {

struct Mistake {
  std::string what;
  // "EINVAL", the completions: "send REM_INV_REQ_ERR, recv LOC_LEN_ERR", or an event of rdma_cm: "REJECTED 8".
  std::string answer;
  std::vector<std::string> said;  // the sentences, in order; {a} is a number that make() has named so
  std::string (*make)(Bench&);    // returns the answer
};

extern const std::vector<Mistake> kMistakesWithObjects;
extern const std::vector<Mistake> kMistakesWithStates;
extern const std::vector<Mistake> kMistakesInPosting;
extern const std::vector<Mistake> kMistakesWithMemory;
extern const std::vector<Mistake> kMistakesInMessages;
extern const std::vector<Mistake> kMistakesWithXrc;
extern const std::vector<Mistake> kMistakesWithConnections;

}  // namespace nicless::test

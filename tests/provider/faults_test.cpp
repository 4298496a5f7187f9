// SPDX-License-Identifier: MIT
// Goal: a process has the faults that its environment asks for: so many messages denied a receive, the n-th send
// request failed, each port with a seed of its own. Method: options as values, calls counted; what a queue pair makes
// of them is shown in verbs (forced_test.cpp) and by programs.
#include "provider/faults.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>

using namespace nicless;
using namespace nicless::provider;
using queue::WcStatus;

namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("without variables nothing befalls anything", "[faults]") {
  const auto faults = ProcessFaults::from_environment();
  REQUIRE(faults.has_value());
  CHECK(!(*faults)->has_any());
  CHECK((*faults)->make_port_faults() == nullptr);
  CHECK(!(*faults)->denies_receive());
  CHECK(!(*faults)->next_send());
}

TEST_CASE("a variable that cannot be read is an error, with its name", "[faults]") {
  const Variable loss("NICLESS_LOSS", "1");
  const auto faults = ProcessFaults::from_environment();
  REQUIRE(faults.has_error());
  CHECK(faults.error() == queue::Error(EINVAL,
                                       "NICLESS_LOSS: 1 is no percentage from 0% to 100%; write it with the sign, such "
                                       "as 0.5%"));
}

TEST_CASE("so many messages are denied a receive as --rnr says, over the whole process", "[faults]") {
  const Variable rnr("NICLESS_RNR", "2");
  const auto faults = ProcessFaults::from_environment();
  REQUIRE(faults.has_value());
  CHECK((*faults)->has_denials());
  CHECK((*faults)->denies_receive());
  CHECK((*faults)->denies_receive());
  CHECK(!(*faults)->denies_receive());
  CHECK((*faults)->summary({}) == "faults: 2 messages found no receive");
}

TEST_CASE("the n-th send request of the process fails, and no other", "[faults]") {
  const Variable fail("NICLESS_FAIL", "2:RETRY_EXC_ERR,3:REM_OP_ERR");
  const auto faults = ProcessFaults::from_environment();
  REQUIRE(faults.has_value());
  CHECK(!(*faults)->next_send());
  CHECK((*faults)->next_send() == WcStatus::RetryExcErr);
  CHECK((*faults)->next_send() == WcStatus::RemOpErr);
  CHECK(!(*faults)->next_send());
  CHECK((*faults)->summary({}) == "faults: 2 of 4 send requests were made to fail");
}

TEST_CASE("each port of a process has faults of its own, the same in each run", "[faults]") {
  wire::FaultOptions options;
  options.link.loss = 0.5;
  options.link.seed = 7;
  const auto fates = [&](int port) {
    ProcessFaults process(options);
    for (int i = 0; i < port; ++i) process.make_port_faults();
    const auto faults = process.make_port_faults();
    wire::SendBatch batch;
    std::vector<std::uint64_t> lost;
    for (int i = 0; i < 60; ++i) {
      wire::finish_headers({}, batch.slot());
      batch.keep();
      faults->take({}, batch);
      lost.push_back(faults->counters().lost);
    }
    return lost;
  };
  CHECK(fates(0) == fates(0));
  CHECK(fates(1) == fates(1));
  CHECK(fates(0) != fates(1));
}

TEST_CASE("the summary says how many datagrams each fault hit", "[faults]") {
  wire::FaultOptions options;
  options.link.loss = 0.5;
  const ProcessFaults faults(options);
  wire::LinkCounters counters;
  counters.sent = 100;
  counters.lost = 4;
  counters.duplicated = 3;
  counters.reordered = 2;
  counters.corrupted = 1;
  CHECK(faults.summary(counters + counters) ==
        "faults: of 200 datagrams sent 8 were lost, 6 sent twice, 4 delayed behind others, 2 corrupted");
}

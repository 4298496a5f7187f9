// SPDX-License-Identifier: MIT
// Goal: what a user writes behind --loss and its kin is taken for what it says, or refused with a sentence that says
// how to write it. Method: single values in, whole options or whole sentences out.
#include "wire/io/fault_options.h"

#include <catch2/catch.hpp>
#include <cerrno>

using namespace nicless;
using namespace nicless::wire;
using namespace std::chrono_literals;
using queue::WcStatus;

namespace {

FaultOptions read(std::string_view name, std::string_view value) {
  FaultOptions options;
  const auto set = set_fault_option(name, value, options);
  INFO(std::string(name) << " " << std::string(value));
  REQUIRE(set.has_value());
  return options;
}

queue::Error refusal(std::string_view name, std::string_view value) {
  FaultOptions options;
  const auto set = set_fault_option(name, value, options);
  INFO(std::string(name) << " " << std::string(value));
  REQUIRE(set.has_error());
  return set.error();
}

}  // namespace

TEST_CASE("percentages become probabilities", "[fault_options]") {
  CHECK(read("loss", "1%").link.loss == Approx(0.01));
  CHECK(read("duplicate", "0.5%").link.duplicate == Approx(0.005));
  CHECK(read("reorder", "100%").link.reorder == Approx(1));
  CHECK(read("corrupt", "0%").link.corrupt == Approx(0));
}

TEST_CASE("what is no percentage is refused, with how to write one", "[fault_options]") {
  const char* const name = GENERATE("loss", "duplicate", "reorder", "corrupt");
  for (const std::string value :
       {"1", "x", "101%", "-1%", "%", "1e1%", "1 %", ".%", "1.2.3%", "0x1%", "nan%", "inf%"}) {
    CHECK(refusal(name, value) ==
          queue::Error(EINVAL, value + " is no percentage from 0% to 100%; write it with the sign, such as 0.5%"));
  }
  CHECK(refusal(name, "").why.starts_with("an empty value is no percentage"));
}

TEST_CASE("delays have a unit and a limit", "[fault_options]") {
  CHECK(read("delay", "200us").link.latency == 200us);
  CHECK(read("delay", "1.5ms").link.latency == 1500us);
  CHECK(read("delay", "60s").link.latency == 60s);
  for (const std::string value : {"5", "61s", "us", "-1us", "5m", "5 ms", "5ns"}) {
    CHECK(
        refusal("delay", value) ==
        queue::Error(EINVAL, value + " is no time of at most 60s; write it with its unit, us, ms or s, such as 200us"));
  }
}

TEST_CASE("seeds and numbers of messages are whole numbers", "[fault_options]") {
  CHECK(read("seed", "18446744073709551615").link.seed == UINT64_MAX);
  CHECK(read("seed", "0").has_seed);
  CHECK(read("rnr", "3").rnr == 3);
  CHECK(refusal("seed", "18446744073709551616").why ==
        "18446744073709551616 is no seed: a number from 0 to 18446744073709551615");
  CHECK(refusal("seed", "7x").errno_value == EINVAL);
  CHECK(refusal("rnr", "-1").why == "-1 is no number of messages, such as 3");
}

TEST_CASE("a failure names a request and a status, by its word or as ibv_wc_status_str says it", "[fault_options]") {
  for (const char* const value :
       {"3:RETRY_EXC_ERR", "3:IBV_WC_RETRY_EXC_ERR", "3:retry_exc_err", "3:transport retry counter exceeded"}) {
    CHECK(read("fail", value).failures == std::vector<FailAt>{{3, WcStatus::RetryExcErr}});
  }
  CHECK(read("fail", "1:LOC_PROT_ERR,20:rem_op_err").failures ==
        std::vector<FailAt>{{1, WcStatus::LocProtErr}, {20, WcStatus::RemOpErr}});
}

TEST_CASE("a failure that cannot be is refused, and an unknown status lists those that are known", "[fault_options]") {
  for (const std::string value : {"3", "0:RETRY_EXC_ERR", "x:RETRY_EXC_ERR", ":RETRY_EXC_ERR", "1.5:RETRY_EXC_ERR"}) {
    CHECK(refusal("fail", value) ==
          queue::Error(EINVAL, value + " is not N:STATUS, the number of a send work request from "
                                       "1 on and how it ends, such as 3:RETRY_EXC_ERR"));
  }
  CHECK(refusal("fail", "1:RETRY_EXC_ERR,").why.starts_with("an empty value is not N:STATUS"));
  for (const std::string value : {"1:frob", "1:SUCCESS", "1:"}) {
    const std::string why = refusal("fail", value).why;
    CHECK(why.find("is no status that a send can fail with; known are LOC_LEN_ERR, LOC_QP_OP_ERR, ") !=
          std::string::npos);
    CHECK(why.ends_with("FATAL_ERR, GENERAL_ERR"));
  }
}

TEST_CASE("only what changes datagrams needs a link", "[fault_options]") {
  CHECK(!FaultOptions{}.has_link_faults());
  CHECK(!read("loss", "0%").has_link_faults());
  CHECK(!read("rnr", "3").has_link_faults());
  CHECK(!read("seed", "7").has_link_faults());
  CHECK(read("loss", "0.001%").has_link_faults());
  CHECK(read("delay", "1us").has_link_faults());
  CHECK(!read("delay", "1us").has_chance());  // and so no seed
}

TEST_CASE("what is no fault is refused", "[fault_options]") {
  CHECK(refusal("frob", "1") == queue::Error(EINVAL, "frob is no fault"));
}

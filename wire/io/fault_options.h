// SPDX-License-Identifier: MIT
// The faults that a user asks for, read from text: the options of `nicless run` and the NICLESS_* variables are the
// same words, and this is the one place that knows what they may hold. Pure functions. docs/FAULTS.md is the user's
// page.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "queue/completion.h"
#include "queue/result.h"
#include "wire/link.h"

namespace nicless::wire {

// The n-th send work request of the process, counted from 1, completes with this status.
struct FailAt {
  std::uint64_t number = 0;
  queue::WcStatus status = queue::WcStatus::GeneralErr;
  friend bool operator==(const FailAt&, const FailAt&) = default;
};

struct FaultOptions {
  LinkConfig link;  // its seed counts only if has_seed
  bool has_seed = false;
  std::uint64_t rnr = 0;  // so many messages find no receive
  std::vector<FailAt> failures;

  bool has_link_faults() const;
  bool has_chance() const;  // then the seed matters
};

// The option --NAME; its variable is NICLESS_NAME.
inline constexpr std::array<std::string_view, 8> kFaultOptionNames{"loss",  "duplicate", "reorder", "corrupt",
                                                                   "delay", "seed",      "rnr",     "fail"};

// EINVAL with a sentence that begins with the value: "1x is no percentage; ...". An empty value is an error, too.
queue::Result<void> set_fault_option(std::string_view name, std::string_view value, FaultOptions& options);

}  // namespace nicless::wire

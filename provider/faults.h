// SPDX-License-Identifier: MIT
// The faults that the user asked for in NICLESS_LOSS and its kin, as one process has them: what befalls datagrams, how
// many messages find no receive, which send work requests fail. docs/FAULTS.md is the user's page. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "queue/receive_queue.h"
#include "queue/result.h"
#include "wire/io/fault_options.h"
#include "wire/io/faults.h"

namespace nicless::provider {

class ProcessFaults {
 public:
  // EINVAL: a variable is not written right. A program that was to be tested must not run untested.
  static queue::Result<std::unique_ptr<ProcessFaults>> from_environment();
  explicit ProcessFaults(wire::FaultOptions options);

  // For the next port that the process opens, or null. Ports are numbered, and each number has a seed of its own.
  std::unique_ptr<wire::Faults> make_port_faults();

  // Whether a message that arrives now has to go without a receive; counts it.
  bool denies_receive();
  bool has_denials() const { return options_.rnr != 0; }

  // One more send work request was posted: the status it has to fail with, or nothing.
  std::optional<queue::WcStatus> next_send();
  bool has_failures() const { return !options_.failures.empty(); }

  bool has_any() const { return options_.has_link_faults() || has_denials() || has_failures(); }
  // What was done so far, as a sentence; link: of all ports together.
  std::string summary(const wire::LinkCounters& link) const;

 private:
  const wire::FaultOptions options_;
  std::atomic<std::uint64_t> next_port_{0};
  std::atomic<std::uint64_t> denied_{0};
  std::atomic<std::uint64_t> sends_{0};
  std::atomic<std::uint64_t> failed_{0};
};

wire::LinkCounters operator+(const wire::LinkCounters& a, const wire::LinkCounters& b);

// A receive queue as --rnr has it: for so many messages nothing seems to be posted.
class DeniedReceives final : public queue::ReceiveSource {
 public:
  DeniedReceives(queue::ReceiveSource& posted, ProcessFaults& faults) : posted_(posted), faults_(faults) {}
  bool take(queue::RecvWqe& out) override { return !faults_.denies_receive() && posted_.take(out); }
  std::uint32_t sge_max() const override { return posted_.sge_max(); }
  queue::Credit& credit() override { return posted_.credit(); }

 private:
  queue::ReceiveSource& posted_;
  ProcessFaults& faults_;
};

}  // namespace nicless::provider

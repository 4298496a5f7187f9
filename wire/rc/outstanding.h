// SPDX-License-Identifier: MIT
// Which packet sequence numbers each work request in the send queue has: made when its first packet is sent, kept until
// it is retired. Numbers are unwrapped (psn.h). Port-bound.
#pragma once

#include <cstdint>
#include <vector>

#include "queue/check.h"

namespace nicless::wire {

class Outstanding {
 public:
  struct Record {
    std::uint64_t first_psn = 0;
    std::uint32_t packets = 0;    // one a request packet; for a read, one a response packet (IBTA 9.7.1)
    std::uint32_t answered = 0;   // of a read or an atomic: response packets that arrived, in order
    bool wants_response = false;  // a read or an atomic: an ACK alone does not complete it
    std::uint64_t end_psn() const { return first_psn + packets; }
    bool is_unanswered() const { return wants_response && answered < packets; }
  };
  static constexpr std::uint64_t kPacketsMax = std::uint64_t{1} << 23;  // of the longest message at the least path MTU
  // Where in the send queue a PSN stands.
  struct Position {
    std::uint64_t seq = 0;
    std::uint64_t packet = 0;  // index within the work request
  };

  // depth: of the send queue, whose sequence numbers name the records.
  void start(std::uint32_t depth, std::uint64_t first_seq, std::uint64_t first_psn);

  std::uint64_t begun_seq() const { return begun_seq_; }  // work requests below this one have a record
  std::uint64_t end_psn() const { return end_psn_; }      // the first PSN nobody has
  // Gives the next work request its PSNs.
  Record& begin(std::uint64_t packets, bool wants_response);
  Record& at(std::uint64_t seq) { return records_[seq & (records_.size() - 1)]; }
  const Record& at(std::uint64_t seq) const { return records_[seq & (records_.size() - 1)]; }
  // The position of a PSN at or after that of first_seq; end_psn() gives the beginning of the next work request.
  Position find(std::uint64_t first_seq, std::uint64_t psn) const;

 private:
  std::vector<Record> records_;  // a power of two of them, the depth at least
  std::uint64_t begun_seq_ = 0;
  std::uint64_t end_psn_ = 0;
};

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
// What the Linux kernel's Soft-RoCE sent over one connection in one direction (tests/golden), played to our own
// responder or requester: what comes out is compared with what the kernel's sent. Packets as lines of text, so that a
// difference can be read. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/pair.h"

namespace nicless::sim {

// The requests to one queue pair and the responses to its peer, in the order of the capture.
struct GoldenFlow {
  struct Event {
    bool is_response = false;
    Packet packet;
  };
  std::string name;  // "rxt-ops, requests to qp 000054"
  wire::Service service = wire::Service::Rc;
  std::uint16_t path_mtu = 1024;
  std::vector<Event> events;

  std::uint32_t first_psn() const;
  std::vector<std::string> requests() const;  // lines
  std::vector<std::string> responses() const;
};

// One for each queue pair that requests went to, but for QP 1. Only reliable connections have responses.
std::vector<GoldenFlow> golden_flows(const std::string& file);

// "RC_SEND_LAST_IMM psn=f04f0c ack_req imm=01020304 bytes=952": all that must agree, but for the queue pair's number.
std::string to_line(const Packet& packet);

// The lines that differ, by the longest common subsequence: "- LINE" only the kernel sent, "+ LINE" only we did.
std::vector<std::string> difference(const std::vector<std::string>& kernel, const std::vector<std::string>& ours);

}  // namespace nicless::sim

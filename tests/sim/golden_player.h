// SPDX-License-Identifier: MIT
// Plays one golden flow to a queue pair of ours, in the part of the kernel's. Thread-compatible.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/golden_flow.h"

namespace nicless::sim {

// Our responder gets the kernel's requests one by one and answers each at once. It has the memory that the requests
// name, but for ranges the kernel refused, and a receive for each message, but where the kernel said RNR.
class ResponderPlayer {
 public:
  explicit ResponderPlayer(const GoldenFlow& flow);
  std::vector<std::string> play();  // our responses, as lines
  std::vector<Wc> received() { return received_; }

 private:
  struct Region {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    queue::RKey ours{};
    bool is_window = false;            // a request invalidates its key: a type 2 window over it
    std::vector<std::uint64_t> words;  // the memory
  };
  void make_regions();
  void name_regions();
  queue::RKey register_region(Region& region);
  void widen(queue::RKey rkey, std::uint64_t address, std::uint64_t length);
  void preset(std::uint64_t address, queue::RKey rkey, std::uint32_t psn);
  bool was_refused(std::uint32_t psn) const;
  bool is_rnr_next(std::size_t event) const;
  Packet to_ours(Packet packet) const;

  const GoldenFlow& flow_;
  ExactPair pair_;
  std::map<queue::RKey, Region> regions_;  // by the kernel's key
  Buffer landing_;
  std::vector<Wc> received_;
};

// The work requests that the kernel's requests are made of, posted to our requester when the kernel began to send them;
// the kernel's responses are handed to it as they came.
class RequesterPlayer {
 public:
  explicit RequesterPlayer(const GoldenFlow& flow, const ConnectionConfig& config = {});
  // Our requests, as lines. Where the kernel sends something once more and we have not, a timer of ours has run out,
  // unless it was the network that doubled it.
  std::vector<std::string> play(bool is_doubled = false);
  void give_up();  // nobody answers any more: its timers run out
  std::vector<Wc> completed() { return completed_; }
  std::size_t messages() const { return messages_.size(); }

 private:
  struct Message {
    std::uint32_t first_psn = 0;
    queue::Wqe wqe;
    std::vector<std::byte> bytes;  // what it sends
  };
  void find_messages();
  Message message_at(std::uint32_t psn, std::uint32_t& next_psn) const;
  void post(std::size_t index);
  void take(std::vector<std::string>& lines);

  const GoldenFlow& flow_;
  std::map<std::uint32_t, const Packet*> by_psn_;
  std::vector<Message> messages_;
  ExactPair pair_;
  Buffer memory_;
  std::size_t posted_ = 0;
  std::map<std::uint32_t, std::size_t> sent_;  // how often, by PSN
  std::vector<Wc> completed_;
};

}  // namespace nicless::sim

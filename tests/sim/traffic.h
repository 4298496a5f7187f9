// SPDX-License-Identifier: MIT
// A whole run of random traffic over one or more reliable connections between two hosts, both ways at once, decided by
// one seed: the network, the connections, the requests and the moments at which the programs post, poll, drain and
// give up. The oracle (flow.h) watches. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "queue/rng.h"
#include "tests/sim/flow.h"
#include "tests/sim/traffic_config.h"

namespace nicless::sim {

struct TrafficResult {
  std::uint64_t completions = 0;
  std::uint64_t datagrams = 0;
  queue::Duration virtual_time{};
  bool broken = false;
};

class Traffic {
 public:
  explicit Traffic(const TrafficConfig& config);
  ~Traffic();
  // Throws a Failure that tells everything.
  TrafficResult run();

 private:
  struct Host;  // what all queue pairs of a host share
  struct End;   // one program: a side, its memory, its flow of requests
  struct Connection;

  void connect(Connection& connection);
  void plan(std::size_t index);
  void act();
  bool is_everything_posted() const;
  std::size_t receives_due(const End& end) const;
  void post_send(std::size_t who, End& end);
  bool may_post(const End& end, const Request& request) const;
  queue::Binding bind_anew(End& end) const;
  void post_recv(End& end);
  void poll(End& end);
  void check_at_rest();
  void check_common_word(std::size_t who);
  std::string reasons();

  const TrafficConfig config_;
  queue::Rng rng_;
  World world_;
  const std::size_t slot_bytes_;
  std::unique_ptr<Host> hosts_[2];
  std::vector<std::unique_ptr<Connection>> connections_;
  std::uint64_t completions_ = 0;
};

}  // namespace nicless::sim

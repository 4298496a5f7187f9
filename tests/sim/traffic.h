// SPDX-License-Identifier: MIT
// A whole run of random traffic between two queue pairs, both ways at once, decided by one seed: the network, the
// connection, the requests and the moments at which the two programs post and poll. The oracle watches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "queue/rng.h"
#include "tests/sim/oracle.h"
#include "tests/sim/pair.h"

namespace nicless::sim {

enum class Ending : std::uint8_t { Clean, BadLkey, BadRkey, TooLong };

struct TrafficConfig {
  PairConfig pair;
  std::size_t requests_each_way = 60;
  std::size_t packets_max = 6;    // path MTUs in the longest message
  double late_receives = 0;       // how often a program does something else than post the receive that is due
  Ending ending = Ending::Clean;  // how the requests of A end
  bool may_break = false;         // the network is so bad that retries may run out
  static TrafficConfig of(std::uint64_t seed);
};
std::string to_string(const TrafficConfig& config);  // one line, for a failure

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
  struct End;  // one program: a side, its memory, its flows
  std::vector<Request> plan(std::size_t who);
  Request plan_request(std::size_t who, std::size_t index);
  std::size_t random_length();
  std::vector<Piece> random_pieces(std::size_t start, std::size_t length, std::size_t pieces_max);
  void spoil(Request& request);
  bool post_send(std::size_t who);
  bool post_recv(std::size_t who);
  void poll(std::size_t who);
  void act();
  bool everything_posted() const;
  std::string reasons();

  const TrafficConfig config_;
  queue::Rng rng_;
  Pair pair_;
  std::size_t message_bytes_max_;
  std::size_t slot_bytes_;
  std::unique_ptr<End> ends_[2];
  std::uint64_t completions_ = 0;
};

}  // namespace nicless::sim

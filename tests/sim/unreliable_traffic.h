// SPDX-License-Identifier: MIT
// A run of random traffic that nobody acknowledges, decided by one seed: two unreliable connections, or datagram queue
// pairs that all send to all. The oracle in it: a message arrives whole, unchanged and, over a connection, in order and
// once, or not at all; a send completes once, in order, whether it arrived or not; no other byte changes.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "queue/rng.h"
#include "tests/sim/receive_pool.h"
#include "tests/sim/traffic_config.h"
#include "tests/sim/world.h"
#include "wire/ud/grh.h"

namespace nicless::sim {

struct UnreliableConfig {
  std::uint64_t seed = 1;
  wire::LinkConfig faults;
  SideConfig side;  // of either transport
  ConnectionConfig connection;
  std::size_t messages_each = 60;
  std::size_t packets_max = 6;  // of a connection's messages
  double late_receives = 0;
  double mistakes = 0;          // sends with a bad key, or of the wrong size, that end in SQE
  double drains = 0;            // SQD and back
  bool receives_first = false;  // before anything is sent
  bool is_short = false;        // the last receive of the first end is too short for any message
  static UnreliableConfig of(std::uint64_t seed, wire::Transport transport);
};
std::string to_string(const UnreliableConfig& config);

struct UnreliableResult {
  std::uint64_t sent = 0;
  std::uint64_t due = 0;  // of those sent, what a perfect network brings to a receive
  std::uint64_t arrived = 0;
};

class UnreliableTraffic {
 public:
  explicit UnreliableTraffic(const UnreliableConfig& config);
  ~UnreliableTraffic();
  UnreliableResult run();  // throws a Failure that tells everything

 private:
  struct Message;
  struct End;

  bool is_datagram() const { return config_.side.transport == wire::Transport::Ud; }
  std::size_t grh_bytes() const { return is_datagram() ? wire::kGrhBytes : 0; }
  void plan(std::size_t from);
  Message plan_message(std::size_t from, std::size_t index);
  void act();
  bool is_everything_posted() const;
  void post_send(End& end);
  bool post_recv(End& end);
  void poll(End& end);
  void on_send_completion(End& end, const Wc& wc);
  void on_recv_completion(End& end, const Wc& wc);
  void on_message(End& end, const Wc& wc, const std::vector<Piece>& pieces);
  Wc expected_receive(std::uint64_t wr_id, End& sender, const Message& message) const;
  void resume(End& end);
  void check_at_rest(End& end);
  void expect_written(End& target, std::size_t offset, const Message& message);

  const UnreliableConfig config_;
  queue::Rng rng_;
  World world_;
  const std::size_t place_bytes_;  // for one message, gaps included
  std::vector<std::unique_ptr<End>> ends_;
  UnreliableResult result_;
};

}  // namespace nicless::sim

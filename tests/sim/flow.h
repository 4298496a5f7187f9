// SPDX-License-Identifier: MIT
// The oracle of one direction of a reliable connection, the requests of one side and the receives of the other: what
// must be true of every run, whatever the network did. Each request completes exactly once, in order, with the status
// it must have; memory equals a reference copy, no other byte changes; an atomic is carried out once; a failed queue
// pair flushes everything; at rest nothing is outstanding or armed. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/receive_pool.h"
#include "tests/sim/request.h"
#include "tests/sim/world.h"

namespace nicless::sim {

class Flow {
 public:
  struct Ends {
    World& world;
    Side& from;
    Arena& from_arena;
    Side& to;
    Arena& to_arena;
    ReceivePool& receives;  // of `to`
  };
  // In which other way than by its own mistake a request may fail.
  struct Permitted {
    bool flush = false;    // the program, or the peer's requests, may end the connection
    bool timeout = false;  // answers may be lost, or a peer that has failed stays silent
    bool rnr = false;
  };
  // requests: those of `from`, in the order they will be posted; wr_id of request i is i.
  Flow(const Ends& ends, std::vector<Request> requests, Permitted permitted);

  const std::vector<Request>& requests() const { return requests_; }
  // The requests that take a receive, by index: the k-th message that arrives is the k-th of them.
  const std::vector<std::size_t>& takers() const { return takers_; }

  // key: that the request invalidates, if it does that.
  void on_posted(std::uint32_t key = 0);
  std::size_t posted() const { return posted_; }
  std::size_t completed() const { return completed_; }
  std::size_t received() const { return received_; }

  void on_send_completion(const Wc& wc);
  void on_recv_completion(const Wc& wc);
  bool has_failed() const { return first_failed_ || has_failed_receive_; }
  // What the atomics on the common word brought back, in order.
  const std::vector<std::uint64_t>& common_originals() const { return common_originals_; }
  std::size_t common_posted() const;

  // The flows of all connections have ended and the world rests.
  void check_at_rest();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  void check_success(std::size_t index, const Wc& wc);
  void check_failure(std::size_t index, const Wc& wc);
  void on_failed_receive(const Wc& wc, const std::vector<Piece>& pieces);
  void settle(std::size_t end);  // all requests before `end` have succeeded
  void settle_data(const Request& request);
  void check_atomics();
  void forgive_unfinished();

  Ends ends_;
  const std::vector<Request> requests_;
  const Permitted permitted_;
  std::vector<std::size_t> takers_;
  std::vector<std::uint32_t> keys_;  // of each request posted
  std::size_t posted_ = 0;
  std::size_t settled_ = 0;    // requests known to have succeeded
  std::size_t completed_ = 0;  // requests that have or will never have a completion of their own
  std::size_t received_ = 0;   // messages
  std::optional<std::size_t> first_failed_;
  bool has_failed_receive_ = false;
  std::vector<std::uint64_t> common_originals_;
};

}  // namespace nicless::sim

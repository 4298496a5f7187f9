// SPDX-License-Identifier: MIT
// Two connection machines joined by two links in virtual time: what one says the other hears, late, twice or never, as
// the seed and the script decide. The passive side is made by the first REQ that arrives, as the agent does it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cm/connection.h"
#include "wire/link.h"

namespace nicless::cm::test {

using queue::Instant;

struct Side {
  std::optional<Connection> connection;
  std::vector<ConnectionEvent> events;
  std::vector<wire::CmMessage> sent;
  std::vector<std::string> sent_names() const;
  std::vector<std::string> event_names() const;
};

class Pair {
 public:
  explicit Pair(const wire::LinkConfig& config = {});

  void connect(wire::CmReq request);
  // What the passive program does with a request, and the active one with a reply: accept and establish unless told
  // otherwise.
  std::function<void(Connection&)> on_request;
  std::function<void(Connection&)> on_reply;

  // Carries messages and fires deadlines until nothing is left to happen before `until`.
  void run_until(Instant until);
  void run_for(queue::Duration duration) { run_until(now + duration); }
  // Loses the n-th message (from 1) of that name that `from` sends.
  void lose(Side& from, const std::string& name, int nth = 1);
  void drain();

  Instant now{};
  Side active;
  Side passive;

 private:
  bool step(Instant until);
  void drain(Side& side, wire::Link& link);
  void arrive(Side& side, const wire::CmMessage& message);
  void program(Side& side, const ConnectionEvent& event);
  std::optional<Instant> next_time() const;

  wire::Link to_passive_;
  wire::Link to_active_;
};

wire::CmReq request();  // as rdma_connect fills it
wire::CmRep reply();

wire::CmMessage decode(const wire::LinkDatagram& datagram);
std::string name_of_message(const wire::LinkDatagram& datagram);  // "REQ"
std::string name_of(const ConnectionEvent& event);                // "REPLIED"

}  // namespace nicless::cm::test

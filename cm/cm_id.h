// SPDX-License-Identifier: MIT
// An rdma_cm_id: the public struct first, ours behind it, so the program's pointer is our pointer. Its life:
//
//   Idle -> Bound -> Resolving -> AddressResolved -> RouteResolved -> Connecting   (active)
//   Idle -> Bound -> Listening                                        (passive), whose requests are
//   Requested -> Connecting
//
// Everything that the progress thread also touches is guarded by the agent's lock; the public fields are the program's
// thread's alone, as the man pages have it. rdma_create_id(3), rdma_destroy_id(3), rdma_migrate_id(3).
#pragma once

#include <rdma/rdma_cma.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cm/connection_table.h"
#include "cm/devices.h"
#include "cm/event_channel.h"
#include "cm/ports.h"
#include "cm/sidr_table.h"
#include "queue/result.h"

namespace nicless::cm {

struct Agent;
struct Membership;
struct AddressSearch;

struct CmId : rdma_cm_id {
  enum class Stage : std::uint8_t {
    Idle,
    Bound,
    Resolving,
    AddressResolved,
    RouteResolved,
    Listening,
    Requested,
    Connecting
  };

  CmId(void* user_context, rdma_port_space space, ibv_qp_type type);
  ~CmId();

  const std::uint64_t generation;
  bool is_sync = false;  // the channel is ours, and calls wait on it
  std::string failure;   // why its address could not be resolved: for the call that waits
  Stage stage = Stage::Idle;

  // Options, rdma_set_option(3).
  std::uint8_t tos = 0;
  bool may_share_address = false;
  bool is_v6_only = false;
  std::optional<std::uint8_t> ack_timeout;

  Device* device = nullptr;
  std::optional<Binding> binding;
  GidPlace place;   // of `local`, once bound to a device
  wire::Gid local;  // the address this end uses
  wire::Endpoint remote;
  std::uint8_t path_mtu = IBV_MTU_1024;
  std::uint8_t packet_lifetime = kPacketLifetime;
  std::uint16_t source_port = 0;
  std::unique_ptr<AddressSearch> search;  // while it is Resolving

  // Connection.
  ConnectionEntry* connection = nullptr;
  wire::Psn starting_psn;
  std::uint8_t initiator_depth = 0;
  std::uint8_t responder_resources = 0;
  bool had_connect_error = false;  // CONNECT_ERROR was the last word on it
  ibv_ece local_ece{};             // what the vendor of the program's queue pair has to say, and the peer's
  ibv_ece remote_ece{};

  // Datagram services: what is being asked, or was asked and not answered yet.
  std::optional<SidrTable::RequestId> sidr_question;
  std::optional<SidrTable::AnswerKey> sidr_request;

  std::vector<std::unique_ptr<Membership>> memberships;  // multicast groups

  // Listeners.
  int backlog = 0;
  int queued_requests = 0;                            // reported, not yet fetched
  std::unique_ptr<ibv_qp_init_attr> request_qp_attr;  // rdma_create_ep(3): queue pairs for rdma_get_request

  unsigned events_outstanding = 0;  // queued or fetched, not acknowledged
  std::condition_variable_any acknowledged;
  std::unique_ptr<ibv_sa_path_rec> path_record;  // what route.path_rec shows
  std::vector<std::byte> connect_data;           // rdma_addrinfo.ai_connect

  bool is_resolving_addrinfo = false;  // until rdma_query_addrinfo
  rdma_addrinfo* resolved_addrinfo = nullptr;
};

inline CmId& id_of(rdma_cm_id* id) {
  return *static_cast<CmId*>(id);
}

// With a null channel the id is synchronous and has one of its own.
Result<CmId*> create_id(rdma_event_channel* channel, void* context, rdma_port_space ps, ibv_qp_type qp_type);
// Tells the peer, forgets what is queued, waits until the program has acknowledged what it fetched.
Result<void> destroy_id(CmId& id);
// The first half of it: the connection ends, the port is free, nothing will be told any more. The agent's lock is held.
void release(Agent& agent, CmId& id);
Result<void> migrate_id(CmId& id, rdma_event_channel* channel);
Result<void> set_option(CmId& id, int level, int name, const void* value, std::size_t bytes);

// Why an id in this stage cannot do what ends an earlier one: what it does instead, in words.
const char* why_busy(CmId::Stage stage);

// Waits for the outcome of what was just started if the id is synchronous: its event becomes id->event, and an error
// of it the error of the call.
Result<void> complete(CmId& id);
// The event a synchronous id still shows.
void release_shown_event(CmId& id);

// Ties the id to the device that has `local`: verbs, port_num, pd, route.addr.addr.
Result<void> bind_device(Agent& agent, CmId& id, const wire::Gid& local);

}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
#include "cm/connect.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "cm/address.h"
#include "cm/agent.h"
#include "cm/conn_param.h"
#include "cm/datagram.h"
#include "cm/messages.h"
#include "cm/qp.h"
#include "cm/resolve.h"
#include "provider/private.h"

namespace nicless::cm {
namespace {

constexpr int kBacklogMax = 1024;  // also what 0 and nonsense mean, as in the kernel
constexpr std::uint8_t kMostRetries = 7;

// What rdma_connect(3) and rdma_accept(3) say about their parameters.
Result<void> check_param(const CmId& id, const rdma_conn_param* param) {
  if (id.device == nullptr) return queue::error(EINVAL, "the id is not bound to a device");
  if (param == nullptr) {
    if (id.qp != nullptr || id.ps != RDMA_PS_TCP) return {};
    return queue::error(EINVAL, "conn_param may only be NULL if the id has a queue pair");
  }
  if (is_datagram(id)) return {};
  if (param->responder_resources != RDMA_MAX_RESP_RES &&
      param->responder_resources > id.device->max_responder_resources)
    return queue::error(EINVAL, "responder_resources is more than the device's max_qp_rd_atom");
  if (param->initiator_depth != RDMA_MAX_INIT_DEPTH && param->initiator_depth > id.device->max_initiator_depth)
    return queue::error(EINVAL, "initiator_depth is more than the device's max_qp_init_rd_atom");
  return {};
}

EndSpec describe_end(const CmId& id, const rdma_conn_param* param) {
  return {.qpn = queue::Qpn(qp_number(id, param)),
          .starting_psn = id.starting_psn,
          .responder_resources = id.responder_resources,
          .initiator_depth = id.initiator_depth,
          .rnr_retry_count = param == nullptr ? kMostRetries : param->rnr_retry_count,
          .flow_control = param != nullptr && param->flow_control != 0,
          .srq = uses_srq(id, param),
          .is_xrc_target = id.qp_type == IBV_QPT_XRC_RECV,
          // An answer repeats the asker's vendor.
          .ece = {(id.remote_ece.vendor_id != 0 ? id.remote_ece : id.local_ece).vendor_id, id.local_ece.options}};
}

// RDMA_OPTION_ID_ACK_TIMEOUT takes the place of a round trip, of which a packet lifetime is one way.
std::uint8_t lifetime_of(const CmId& id) {
  if (!id.ack_timeout) return id.packet_lifetime;
  return *id.ack_timeout > 0 ? static_cast<std::uint8_t>(*id.ack_timeout - 1) : 0;
}

wire::CmService transport_of(ibv_qp_type type) {
  if (type == IBV_QPT_UC) return wire::CmService::Uc;
  return type == IBV_QPT_XRC_SEND ? wire::CmService::Extended : wire::CmService::Rc;
}

RequestSpec describe_request(const CmId& id, const rdma_conn_param* param, std::uint32_t flow_label) {
  return {.space = static_cast<wire::PortSpace>(id.ps),
          .transport = transport_of(id.qp_type),
          .extended_transport = id.qp_type == IBV_QPT_XRC_SEND ? wire::CmReq::kXrc : std::uint8_t{0},
          .local = {id.local, id.source_port},
          .remote = id.remote,
          .end = describe_end(id, param),
          .retry_count = param == nullptr ? kMostRetries : param->retry_count,
          .path_mtu = id.path_mtu,
          .traffic_class = id.tos,
          .flow_label = flow_label,
          .packet_lifetime = lifetime_of(id)};
}

Result<void> start_connecting(Agent& agent, CmId& id, const rdma_conn_param* param) REQUIRES(agent.mutex) {
  if (id.stage != CmId::Stage::RouteResolved)
    return queue::error(EINVAL,
                        "rdma_resolve_addr and rdma_resolve_route have to succeed before, and one "
                        "connection is all an id can have");
  const auto path = path_to_service(id);
  if (!path) return path.error();
  const auto user = private_data_of(param);
  std::vector<std::byte> data = std::exchange(id.connect_data, {});
  data.insert(data.end(), user.begin(), user.end());
  const auto request = build_request(describe_request(id, param, agent.rng.next_u32()), data);
  const Identity me = agent.make_identity(id.device->ca_guid);
  id.connection = &agent.connections.add(Connection::connect(now(), me, request), *path, &id);
  id.connection->data_port = hold_data_port(request.local_qpn);
  if (path->remote.port == 0) id.connection->connection.on_impossible_service(now());
  id.stage = CmId::Stage::Connecting;
  agent.pump(*id.connection, now());
  return {};
}

Result<void> reply(CmId& id, const wire::CmRep& rep) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (auto accepted = id.connection->connection.accept(now(), rep); !accepted) return accepted;
  id.connection->data_port = hold_data_port(rep.queue_pair());
  id.stage = CmId::Stage::Connecting;
  (*agent)->pump(*id.connection, now());
  return {};
}

// The program's number unless it asks for the most: then what the peer asked for, as far as the device goes.
std::uint8_t choose(const std::uint8_t* asked, std::uint8_t requested, std::uint8_t device_max) {
  return asked == nullptr || *asked == RDMA_MAX_RESP_RES ? std::min(requested, device_max) : *asked;
}

Result<void> reject_connection(CmId& id, std::span<const std::byte> private_data, wire::RejReason reason) {
  if (auto ok = check_length(private_data.size(), wire::CmRej::kPrivateBytes); !ok) return ok;
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (id.connection == nullptr) return queue::error(EINVAL, "there is no request here to reject");
  auto rejected = id.connection->connection.reject(reason, private_data);
  (*agent)->pump(*id.connection, now());
  return rejected;
}

}  // namespace

Result<void> connect(CmId& id, const rdma_conn_param* param) {
  if (auto ok = check_param(id, param); !ok) return ok;
  if (is_datagram(id)) return connect_datagram(id, param);
  const std::size_t bytes = id.connect_data.size() + private_data_of(param).size();
  if (auto ok = check_length(bytes, wire::CmReq::kUserBytes); !ok) return ok;
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  {
    Turn turn(**agent);
    const bool most_depth = param == nullptr || param->initiator_depth == RDMA_MAX_INIT_DEPTH;
    const bool most_resources = param == nullptr || param->responder_resources == RDMA_MAX_RESP_RES;
    id.initiator_depth = most_depth ? id.device->max_initiator_depth : param->initiator_depth;
    id.responder_resources = most_resources ? id.device->max_responder_resources : param->responder_resources;
    if (auto started = start_connecting(**agent, id, param); !started) return started;
  }
  return complete(id);
}

Result<void> listen(CmId& id, int backlog) {
  if (id.stage == CmId::Stage::Idle) {
    const sockaddr_storage any = any_address(AF_INET, 0);
    if (auto bound = bind_addr(id, &as_sockaddr(any)); !bound) return bound;
  }
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (id.stage != CmId::Stage::Bound) return queue::error(EINVAL, why_busy(id.stage));
  if (auto ok = (*agent)->ports.check_listening(*id.binding, id); !ok) return ok;
  id.backlog = backlog > 0 && backlog < kBacklogMax ? backlog : kBacklogMax;
  id.stage = CmId::Stage::Listening;
  return {};
}

Result<void> accept(CmId& id, const rdma_conn_param* param) {
  if (id.stage != CmId::Stage::Requested)
    return queue::error(EINVAL, "the id did not come with a CONNECT_REQUEST, or was accepted already");
  if (auto ok = check_param(id, param); !ok) return ok;
  if (is_datagram(id)) return accept_datagram(id, param);
  if (auto ok = check_length(private_data_of(param).size(), wire::CmRep::kPrivateBytes); !ok) return ok;
  id.initiator_depth =
      choose(param == nullptr ? nullptr : &param->initiator_depth, id.initiator_depth, id.device->max_initiator_depth);
  id.responder_resources = choose(param == nullptr ? nullptr : &param->responder_resources, id.responder_resources,
                                  id.device->max_responder_resources);
  if (auto moved = move_to_rtr(id, id.responder_resources); !moved) return moved;
  if (auto moved = move_to_rts(id, id.initiator_depth); !moved) return moved;
  if (auto replied = reply(id, build_reply(describe_end(id, param), private_data_of(param))); !replied) {
    move_to_error(id);
    return replied;
  }
  return complete(id);
}

Result<void> reject(CmId& id, std::span<const std::byte> private_data, wire::RejReason reason) {
  auto rejected = is_datagram(id) ? reject_datagram(id, private_data) : reject_connection(id, private_data, reason);
  if (rejected) release_shown_event(id);  // the request, of a synchronous listener
  return rejected;
}

Result<void> establish(CmId& id) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Result<void> done = move_to_rtr(id, RDMA_MAX_RESP_RES);
  if (done) done = move_to_rts(id, RDMA_MAX_INIT_DEPTH);
  if (done) {
    Turn turn(**agent);
    if (id.connection == nullptr) return queue::error(EINVAL, "the id is not connecting");
    done = id.connection->connection.establish();
    (*agent)->pump(*id.connection, now());
  }
  if (!done) move_to_error(id);
  return done;
}

Result<void> notify(CmId& id, ibv_event_type event) {
  if (event != IBV_EVENT_COMM_EST) return queue::error(EINVAL, "only IBV_EVENT_COMM_EST concerns a connection");
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (id.connection == nullptr) return queue::error(EINVAL, "the id is not connecting");
  auto notified = id.connection->connection.notify_established(now());
  (*agent)->pump(*id.connection, now());
  return notified;
}

Result<void> disconnect(CmId& id) {
  if (id.verbs == nullptr) return queue::error(EINVAL, "the id is not bound to a device");
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  move_to_error(id);
  if (is_datagram(id) && id.stage == CmId::Stage::Connecting) return {};  // nobody needs to hear of it
  {
    Turn turn(**agent);
    if (id.connection == nullptr) return queue::error(EINVAL, "the id was never connected");
    id.connection->connection.disconnect(now());
    (*agent)->pump(*id.connection, now());
    const unsigned shown = id.event == nullptr || static_cast<CmEvent*>(id.event)->owner != &id ? 0 : 1;
    if (id.connection->connection.is_finished() && id.events_outstanding <= shown) return {};  // nothing will come
  }
  return complete(id);
}

}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
#include "tests/sim/side.h"

#include <array>
#include <ostream>

#include "tests/sim/world.h"
#include "wire/rc/queue_pair.h"
#include "wire/uc/uc_queue_pair.h"
#include "wire/ud/ud_queue_pair.h"

namespace nicless::sim {

namespace {

void require(const queue::Result<void>& result) {
  if (!result) throw Failure(result.error().why);
}

Wc to_value(const ibv_wc& wc) {
  Wc value{.wr_id = wc.wr_id, .status = static_cast<queue::WcStatus>(wc.status)};
  if (value.status != queue::WcStatus::Success) return value;
  value.opcode = static_cast<queue::WcOpcode>(wc.opcode);
  value.flags = static_cast<std::uint8_t>(wc.wc_flags);
  if (value.flags & (queue::kWcWithImm | queue::kWcWithInv)) value.imm = wc.imm_data;
  if (value.opcode != queue::WcOpcode::Send && value.opcode != queue::WcOpcode::RdmaWrite) value.byte_len = wc.byte_len;
  if (value.flags & queue::kWcGrh) value.src_qp = wc.src_qp;
  return value;
}

std::unique_ptr<wire::ProgramQueuePair> make_queue_pair(wire::Transport transport, const wire::QpParts& parts) {
  if (transport == wire::Transport::Uc) return std::make_unique<wire::UcQueuePair>(parts);
  if (transport == wire::Transport::Ud) return std::make_unique<wire::UdQueuePair>(parts);
  return std::make_unique<wire::RcQueuePair>(parts, transport);
}

// What each transport's edges take, of all that `attributes` holds.
struct Masks {
  std::uint32_t init;
  std::uint32_t rtr;
  std::uint32_t rts;
};
Masks masks_of(wire::Transport transport) {
  using namespace wire::attr_mask;
  constexpr std::uint32_t kInit = kState | kPkeyIndex | kPort;
  if (transport == wire::Transport::Ud) return {kInit | kQkey, kState, kState | kSqPsn};
  constexpr std::uint32_t kConnected = kState | kAv | kPathMtu | kDestQpn | kRqPsn;
  if (transport == wire::Transport::Uc) return {kInit | kAccessFlags, kConnected, kState | kSqPsn};
  constexpr std::uint32_t kResponder = kMaxDestRdAtomic | kMinRnrTimer;
  constexpr std::uint32_t kSending = kState | kSqPsn | kTimeout;
  constexpr std::uint32_t kRequester = kRetryCnt | kRnrRetry | kMaxQpRdAtomic;
  if (transport == wire::Transport::XrcInitiator) return {kInit | kAccessFlags, kConnected, kSending | kRequester};
  if (transport == wire::Transport::XrcTarget) return {kInit | kAccessFlags, kConnected | kResponder, kSending};
  return {kInit | kAccessFlags, kConnected | kResponder, kSending | kRequester};
}

}  // namespace

std::string to_string(const Wc& wc) {
  return "wr_id " + std::to_string(wc.wr_id) + " status " + std::to_string(static_cast<int>(wc.status)) + " opcode " +
         std::to_string(static_cast<int>(wc.opcode)) + " bytes " + std::to_string(wc.byte_len) + " flags " +
         std::to_string(wc.flags) + " imm " + std::to_string(wc.imm) +
         (wc.src_qp == 0 ? "" : " src_qp " + std::to_string(wc.src_qp));
}

std::ostream& operator<<(std::ostream& out, const Wc& wc) {
  return out << "{" << to_string(wc) << "}";
}

Wc failed(std::uint64_t wr_id, queue::WcStatus status) {
  return {.wr_id = wr_id, .status = status};
}

Buffer::Buffer(queue::MrTable& table, queue::PdId pd, std::size_t size, std::uint32_t access)
    : bytes_(size, std::byte{0xa5}), keys_(*table.add(pd, bytes_.data(), address(), size, access)) {}

Side::Side(wire::Engine& engine, const wire::Endpoint& endpoint, const SideConfig& config, std::uint64_t seed)
    : engine_(engine),
      endpoint_(endpoint),
      qpn_(*engine.reserve_qpn()),
      async_events_(*queue::open_event_fd()),
      own_regions_(seed),
      regions_(config.regions ? *config.regions : own_regions_),
      send_cq_(config.cq_entries, nullptr, async_events_, &send_cq_),
      recv_cq_(config.cq_entries, nullptr, async_events_, &recv_cq_),
      send_queue_({config.send_depth, config.sge_max, config.inline_max, config.signal_all}, send_cq_, qpn_),
      receive_queue_(config.recv_depth, config.sge_max, recv_cq_, qpn_),
      shared_receives_(config.shared_receives) {
  wire::QpParts parts;
  parts.qpn = qpn_;
  parts.pd = pd_;
  if (config.transport != wire::Transport::XrcTarget) parts.send_queue = &send_queue_;
  if (wire::service_of(config.transport) != wire::Service::Xrc) {
    parts.receives = &receive_queue_;
    parts.own_receives = &receive_queue_;
    parts.recv_cq = &recv_cq_;
  }
  if (shared_receives_) {
    parts.receives = shared_receives_;
    parts.own_receives = nullptr;
  }
  parts.xrc_domain = config.xrc_domain;
  parts.regions = &regions_;
  parts.async_events = &async_events_;
  parts.flight = &flight_;
  parts.handle = this;
  parts.port_mtu = config.port_mtu;
  qp_ = make_queue_pair(config.transport, parts);
  engine_.add(qpn_, *qp_);
}

Side::~Side() {
  engine_.remove(qpn_);
}

void Side::connect(queue::Instant now, const Side& peer, const ConnectionConfig& config, std::uint32_t own_psn,
                   std::uint32_t peer_psn) {
  connect_to_rtr(now, peer, config, peer_psn);
  wire::QpAttributes attributes;
  attributes.state = wire::QpState::Rts;
  attributes.sq_psn = own_psn;
  attributes.timeout = config.timeout;
  attributes.retry_cnt = config.retry_cnt;
  attributes.rnr_retry = config.rnr_retry;
  attributes.max_rd_atomic = config.max_rd_atomic;
  require(qp_->modify(now, attributes, masks_of(transport()).rts));
}

void Side::connect_to_rtr(queue::Instant now, const Side& peer, const ConnectionConfig& config,
                          std::uint32_t peer_psn) {
  const Masks masks = masks_of(transport());
  wire::QpAttributes attributes;
  attributes.state = wire::QpState::Init;
  attributes.access = config.access;
  attributes.qkey = config.qkey;
  require(qp_->modify(now, attributes, masks.init));

  attributes.state = wire::QpState::Rtr;
  attributes.path_mtu = config.path_mtu;
  attributes.dest_qpn = peer.qpn_;
  attributes.rq_psn = peer_psn;
  attributes.max_dest_rd_atomic = config.max_dest_rd_atomic;
  attributes.min_rnr_timer = config.min_rnr_timer;
  attributes.path.local = endpoint_.address;
  attributes.path.remote = peer.endpoint_.address;
  require(qp_->modify(now, attributes, masks.rtr));
}

queue::Result<void> Side::to_state(queue::Instant now, wire::QpState state, std::uint32_t more) {
  wire::QpAttributes attributes;
  attributes.state = state;
  attributes.sqd_async_notify = true;
  auto result = qp_->modify(now, attributes, wire::attr_mask::kState | more);
  if (result) engine_.on_post(now, qpn_);
  return result;
}

Buffer Side::make_buffer(std::size_t size, std::uint32_t access) {
  return Buffer(regions_, pd_, size, access);
}

queue::Result<void> Side::post_send(queue::Instant now, queue::Wqe wqe) {
  if (auto allowed = qp_->check_post_send(wqe); !allowed) return allowed;
  wqe.length = wqe.inline_data.size();
  for (const queue::Sge& sge : wqe.sges) wqe.length += sge.length;
  if (auto posted = send_queue_.post(wqe); !posted) return posted;
  engine_.on_post(now, qpn_);
  return {};
}

queue::Result<void> Side::post_recv(std::uint64_t wr_id, std::span<const queue::Sge> sges) {
  if (auto allowed = qp_->check_post_recv(); !allowed) return allowed;
  if (shared_receives_) return shared_receives_->post(wr_id, sges);
  if (auto posted = receive_queue_.post(wr_id, sges); !posted) return posted;
  qp_->on_recv_posted();
  return {};
}

std::vector<Wc> Side::poll(queue::CompletionQueue& cq) {
  std::vector<Wc> out;
  std::array<ibv_wc, 16> batch{};
  for (int count = cq.poll(batch); count > 0; count = cq.poll(batch)) {
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = batch[static_cast<std::size_t>(i)];
      if (wc.qp_num != qpn_.value()) throw Failure("a completion names another queue pair");
      out.push_back(to_value(wc));
    }
  }
  return out;
}

}  // namespace nicless::sim

// SPDX-License-Identifier: MIT
// Goal: no frame, from whomever, brings an engine with queue pairs of all transports to a crash, a hang, a lost or
// doubled completion, or a write outside what may be written. Method: two hosts with an RC, a UC, a UD and an XRC pair
// in use. The input injects whole frames: its own bytes or mutations of what was sent, with a good ICRC, and if it asks
// for it with the QPN, PSN, keys and Q_Key of a frame that is expected; from the peer or from elsewhere, in any state.
// The seeds hold golden packets (seed_corpus.py).
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "queue/shared_receive_queue.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/program.h"
#include "tests/sim/side.h"
#include "tests/sim/world.h"
#include "wire/packet/icrc.h"

namespace {

using namespace nicless;
using fuzz::Input;
using fuzz::require;

constexpr std::size_t kMemoryBytes = 4096;
constexpr std::size_t kStepsMax = 300;
constexpr std::size_t kKeptMax = 48;       // frames that may still be delivered, per host
constexpr std::size_t kBurstFrames = 256;  // one turn: a queue pair that sends more without an answer never stops
constexpr std::size_t kFrameBytesMax = 1200;
constexpr queue::Srqn kSrqn{0x5a};
constexpr std::array kTransports{wire::Transport::Rc, wire::Transport::Uc, wire::Transport::Ud,
                                 wire::Transport::XrcInitiator, wire::Transport::XrcTarget};
constexpr std::size_t kPeerOf[] = {0, 1, 2, 4, 3};  // an initiator's is a target

struct Host;

// A queue pair, and what its program has seen so far.
struct End : fuzz::Program {
  End(Host& host, wire::Transport transport);
  sim::Side side;
};

struct Host {
  Host(std::uint16_t port, std::uint8_t number)
      : endpoint{sim::address_of(number), port}, regions(number), engine(port) {
    for (const wire::Transport transport : kTransports) ends.push_back(std::make_unique<End>(*this, transport));
    engine.multicast().attach(group(), {ends[2]->side.qpn(), {}});
    sim::Side& any = ends[0]->side;
    srq = std::make_unique<queue::SharedReceiveQueue>(8, 4, any.async_events(), this);
    srq_cq = std::make_unique<queue::CompletionQueue>(64, nullptr, any.async_events(), this);
    domain.add(kSrqn, {srq.get(), srq_cq.get(), &regions, any.pd()});
    constexpr std::uint32_t kRead = queue::kAccessRemoteRead;
    constexpr std::uint32_t kWrite = queue::kAccessLocalWrite | queue::kAccessRemoteWrite | queue::kAccessRemoteAtomic;
    for (const std::uint32_t access : {kRead | kWrite, kRead, std::uint32_t{0}})
      buffers.push_back(any.make_buffer(kMemoryBytes, access));
  }

  // The UD queue pair is in it.
  static wire::Gid group() {
    wire::Gid gid = sim::address_of(1);
    gid.bytes[12] = std::byte{224};
    return gid;
  }

  // Of the SRQ: in order, and only what was posted.
  void check_shared() {
    std::array<ibv_wc, 16> batch{};
    for (int count = srq_cq->poll(batch); count > 0; count = srq_cq->poll(batch)) {
      for (int i = 0; i < count; ++i)
        require(batch[static_cast<std::size_t>(i)].wr_id == shared_seen++ && shared_seen <= shared_posted,
                "a shared receive completes twice, out of order, or unposted");
    }
  }

  const wire::Endpoint endpoint;
  queue::MrTable regions;
  queue::XrcDomain domain;
  wire::Engine engine;
  std::vector<std::unique_ptr<End>> ends;
  std::unique_ptr<queue::SharedReceiveQueue> srq;
  std::unique_ptr<queue::CompletionQueue> srq_cq;
  std::uint64_t shared_posted = 0, shared_seen = 0;
  std::vector<sim::Buffer> buffers;  // open to all; to be read only; closed
  std::vector<std::vector<std::byte>> kept;
};

sim::SideConfig side_config(Host& host, wire::Transport transport) {
  sim::SideConfig config{.send_depth = 8, .recv_depth = 8, .sge_max = 4, .transport = transport};
  config.regions = &host.regions;
  if (transport == wire::Transport::XrcTarget) config.xrc_domain = &host.domain;
  return config;
}

End::End(Host& host, wire::Transport transport)
    : side(host.engine, host.endpoint, side_config(host, transport), host.endpoint.port) {}

class Fuzz {
 public:
  explicit Fuzz(Input input) : input_(input) {
    hosts_[0] = std::make_unique<Host>(std::uint16_t{0x8f10}, std::uint8_t{1});
    hosts_[1] = std::make_unique<Host>(std::uint16_t{0x8f11}, std::uint8_t{2});
    const std::uint8_t bits = input_.u8();
    config_.path_mtu = bits & 1 ? 256 : 1024;
    config_.retry_cnt = bits & 2 ? 1 : 7;
    config_.a_psn = config_.b_psn = bits & 4 ? 0xfffffe : 0x100;
    config_.timeout = bits & 8 ? 8 : 14;
    config_.max_rd_atomic = config_.max_dest_rd_atomic = bits & 16 ? 1 : 4;
    config_.access |= bits & 32 ? 0 : queue::kAccessMwBind;
    for (std::size_t i = 0; i < kTransports.size(); ++i) connect(i);
  }

  void run() {
    for (std::size_t i = 0; i < kStepsMax && !input_.is_empty(); ++i) {
      step();
      check();
    }
    finish();
  }

 private:
  End& end(std::size_t host, std::size_t index) { return *hosts_[host]->ends[index]; }

  // Both ends of the pair that ends at `index` of host 0.
  void connect(std::size_t index) {
    sim::Side& a = end(0, index).side;
    sim::Side& b = end(1, kPeerOf[index]).side;
    a.connect(now_, b, config_, config_.a_psn, config_.b_psn);
    b.connect(now_, a, config_, config_.b_psn, config_.a_psn);
  }

  void step() {
    const std::uint8_t op = input_.u8();
    const std::size_t host = op & 1;
    switch ((op >> 1) % 10) {
      case 0:
      case 1:
        return inject(host);
      case 2:
        return post_send(host);
      case 3:
        return post_recv(host);
      case 4:
        for (int round = 0; round < 3; ++round) {
          carry(0);
          carry(1);
        }
        return;
      case 5:
        take(host);  // lost, unless a mutation of it is delivered later
        return;
      case 6:
        return redeliver(host);
      case 7:
        return wait();
      case 8:
        return to_state(host);
      default:
        if (input_.u8() < 16) hosts_[host]->regions.remove(hosts_[host]->buffers[0].lkey());
        return;
    }
  }

  // What a frame of the input may borrow from the truth.
  enum Borrow : std::uint8_t { kQpn = 0x08, kPsn = 0x10, kResponsePsn = 0x20, kKeys = 0x40 };

  void inject(std::size_t host) {
    const std::uint8_t flags = input_.u8();
    const std::uint8_t from = input_.u8();
    std::vector<std::byte> frame = input_.bytes(std::min<std::size_t>(input_.u16(), kFrameBytesMax));
    frame.resize(frame.size() + wire::kIcrcBytes);
    const std::size_t index = (flags & 7) % kTransports.size();
    if (flags & kKeys) borrow_keys(host, frame);
    if (frame.size() >= wire::Bth::kSize + wire::kIcrcBytes) {
      if (flags & kQpn) put24(frame, 5, addressee(host, flags & 7).value());
      if (flags & (kPsn | kResponsePsn)) borrow_psn(host, index, flags, frame);
    }
    give(host, std::move(frame), from);
  }

  queue::Qpn addressee(std::size_t host, std::size_t which) {
    if (which == 6) return wire::kMulticastQpn;
    if (which == 7) return wire::kGsiQpn;
    return end(host, which % kTransports.size()).side.qpn();
  }

  // The last byte of the frame's PSN is how far it is from what is expected.
  void borrow_psn(std::size_t host, std::size_t index, std::uint8_t flags, std::vector<std::byte>& frame) {
    const auto attributes = end(host, index).side.qp().attributes();
    const std::uint32_t base = flags & kResponsePsn ? attributes.sq_psn : attributes.rq_psn;
    const auto distance = static_cast<std::int8_t>(frame[11]);
    put24(frame, 9, (base + static_cast<std::uint32_t>(distance)) & 0xffffff);
  }

  static void put24(std::vector<std::byte>& bytes, std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 3; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * (2 - i)));
  }

  // Addresses and keys of registered memory, the SRQ's number, the Q_Key.
  void borrow_keys(std::size_t host, std::vector<std::byte>& frame) {
    const wire::Decoded decoded = wire::decode(frame);
    if (!decoded) return;
    wire::Headers headers = decoded.packet.headers;
    const std::uint64_t va = headers.reth.address | headers.atomic.address;
    sim::Buffer& buffer = hosts_[host]->buffers[va % 3];
    headers.reth.address = headers.atomic.address = buffer.address((va >> 3) % kMemoryBytes);
    headers.reth.rkey = headers.atomic.rkey = buffer.rkey();
    headers.deth.qkey = (va & 4) != 0 ? wire::kGsiQkey : config_.qkey;
    headers.xrc.srqn = kSrqn;
    std::array<std::byte, wire::kHeaderBytesMax> bytes{};
    const std::size_t size = wire::encode(headers, bytes);
    std::copy_n(bytes.begin(), size, frame.begin());
  }

  // Seals and receives. `from` 0 to 239: the peer, from 200 on to the group.
  void give(std::size_t host, std::vector<std::byte> frame, std::uint8_t from) {
    wire::Endpoint source = hosts_[1 - host]->endpoint;
    if (from >= 240) source.port = static_cast<std::uint16_t>(from);
    if (from >= 248) source.address = sim::address_of(from);
    wire::Endpoint to = hosts_[host]->endpoint;
    if (from >= 200 && from < 240) to.address = Host::group();
    if (frame.size() >= wire::Bth::kSize + wire::kIcrcBytes && from != 240) {
      std::byte icrc[wire::kIcrcBytes];
      wire::store_icrc(wire::compute_icrc({frame, source, to}, 0), icrc);
      std::copy_n(icrc, wire::kIcrcBytes, frame.end() - wire::kIcrcBytes);
    }
    hosts_[host]->engine.on_datagram(now_, {frame, source, to});
    while (hosts_[host]->engine.gsi().take()) {
    }
  }

  queue::Sge any_sge(std::size_t host) {
    const std::uint8_t bits = input_.u8();
    sim::Buffer& buffer = hosts_[host]->buffers[bits >= 250 ? 2 : 0];
    return buffer.sge((bits & 7) * 256, (bits & 0x38) * 20u + (bits & 3));
  }

  void post_send(std::size_t host) {
    const std::uint8_t bits = input_.u8();
    const std::size_t index = bits % kTransports.size();
    End& own = end(host, index);
    using enum queue::SendOpcode;
    constexpr std::array kOpcodes{Send, SendImm, Write, WriteImm, Read, CompareSwap, FetchAdd, SendInv};
    std::vector<queue::Sge> sges(1 + input_.u8() % 2);
    for (queue::Sge& sge : sges) sge = any_sge(host);
    queue::Wqe wqe;
    wqe.wr_id = own.sends;
    wqe.opcode = kOpcodes[input_.u8() % kOpcodes.size()];
    wqe.sges = sges;
    sim::Buffer& target = hosts_[1 - host]->buffers[bits >= 250 ? 1 : 0];
    wqe.remote_addr = target.address(512);
    wqe.rkey = target.rkey();
    wqe.remote_srqn = kSrqn;
    wqe.datagram.local_gid = hosts_[host]->endpoint.address.bytes;
    wqe.datagram.remote_gid = hosts_[1 - host]->endpoint.address.bytes;
    wqe.datagram.remote_qpn = end(1 - host, kPeerOf[index]).side.qpn();
    wqe.datagram.remote_qkey = config_.qkey;
    if (own.side.post_send(now_, wqe)) ++own.sends;
  }

  void post_recv(std::size_t host) {
    const std::uint8_t bits = input_.u8();
    std::vector<queue::Sge> sges(1 + (bits >> 4) % 3);
    for (queue::Sge& sge : sges) sge = any_sge(host);
    const std::size_t index = bits % kTransports.size();
    if (index >= 3) {
      if (hosts_[host]->srq->post(hosts_[host]->shared_posted, sges)) ++hosts_[host]->shared_posted;
      return;
    }
    End& own = end(host, index);
    if (own.side.post_recv(own.recvs, sges)) ++own.recvs;
  }

  std::vector<std::vector<std::byte>> take(std::size_t host) {
    std::vector<std::vector<std::byte>> sent;
    wire::OutDatagram out;
    while (sent.size() < kBurstFrames && hosts_[host]->engine.next_datagram(now_, out)) {
      wire::seal(out, 0);
      sent.push_back(wire::to_bytes(out));
      require(static_cast<bool>(wire::decode(sent.back())), "what is sent does not decode");
    }
    require(sent.size() < kBurstFrames, "an engine sends and sends");
    hosts_[host]->engine.on_sent();
    auto& kept = hosts_[host]->kept;
    kept.insert(kept.end(), sent.begin(), sent.end());
    if (kept.size() > kKeptMax) kept.erase(kept.begin(), kept.end() - kKeptMax);
    return sent;
  }

  void carry(std::size_t from) {
    for (auto& frame : take(from)) give(1 - from, std::move(frame), 0);
  }

  // Something sent before, perhaps with a byte changed, perhaps cut, perhaps from elsewhere.
  void redeliver(std::size_t to) {
    auto& kept = hosts_[1 - to]->kept;
    if (kept.empty()) return;
    std::vector<std::byte> frame = kept[input_.u8() % kept.size()];
    const std::uint8_t from = input_.u8();
    const std::uint8_t what = input_.u8();
    if (what & 1) frame[input_.u8() % frame.size()] ^= static_cast<std::byte>(input_.u8());
    if (what & 2) frame.resize(input_.u16() % (frame.size() + 8));
    give(to, std::move(frame), from);
  }

  void wait() {
    const std::uint8_t bits = input_.u8();
    const auto next = queue::earliest(hosts_[0]->engine.next_deadline(), hosts_[1]->engine.next_deadline());
    now_ = bits & 1 && next ? std::max(*next, now_) : now_ + std::chrono::microseconds(bits);
    for (auto& host : hosts_) {
      host->engine.on_deadline(now_);
      const auto left = host->engine.next_deadline();
      require(!left || *left > now_, "a deadline stays in the past");
    }
  }

  // Any state, for one end alone; or both ends anew.
  void to_state(std::size_t host) {
    const std::uint8_t bits = input_.u8();
    const std::size_t index = bits % kTransports.size();
    End& own = end(host, index);
    constexpr std::array kStates{wire::QpState::Err, wire::QpState::Sqd, wire::QpState::Rts, wire::QpState::Reset};
    if (bits < 200) {
      const wire::QpState state = kStates[(bits >> 3) & 3];
      if (own.side.to_state(now_, state) && state == wire::QpState::Reset) own.forget(own.side);
      return;
    }
    End& peer = end(1 - host, kPeerOf[index]);
    for (End* each : {&own, &peer}) {
      require(each->side.to_state(now_, wire::QpState::Reset).has_value(), "RESET was refused");
      each->forget(each->side);
    }
    if (bits >= 250) return own.side.connect_to_rtr(now_, peer.side, config_, config_.b_psn);
    connect(host == 0 ? index : kPeerOf[index]);
  }

  void check() {
    for (auto& host : hosts_) {
      for (auto& each : host->ends) each->check_completions(each->side);
      host->check_shared();
    }
  }

  static void require_untouched(sim::Buffer& buffer) {
    const auto bytes = buffer.bytes();
    require(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0xa5}; }),
            "memory without the right to write was written");
  }

  // Whatever happened: in ERR everything that was posted completes, nothing is armed, and closed memory is as it was.
  void finish() {
    for (auto& host : hosts_) {
      for (auto& each : host->ends) {
        const bool is_reset = each->side.qp().attributes().state == wire::QpState::Reset;  // holds nothing, cannot fail
        require(is_reset || each->side.to_state(now_, wire::QpState::Err).has_value(), "ERR was refused");
        each->check_completions(each->side);
        require(each->side.send_queue().empty(), "a send was not flushed");
        require(each->recv_seen == each->recvs, "a receive was not flushed");
      }
      host->check_shared();
      require(!host->engine.next_deadline(), "a timer runs in ERR");
      require_untouched(host->buffers[1]);
      require_untouched(host->buffers[2]);
    }
  }

  Input input_;
  sim::ConnectionConfig config_;
  queue::Instant now_{std::chrono::seconds(1)};
  std::unique_ptr<Host> hosts_[2];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzz(Input(data, size)).run();
  return 0;
}

// SPDX-License-Identifier: MIT
// Goal: no sequence of calls, packets and waits brings two connected queue pairs to a crash, a hang, a lost or doubled
// completion, or a write outside the memory they may write. Method: the input's bytes choose what happens next, from
// any state: posting, carrying, losing and doubling packets, changing or forging them (their ICRC made right again),
// letting timers run, modify_qp, deregistration. Invariants are checked after each step and once more at the end.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tests/fuzz/input.h"
#include "tests/fuzz/program.h"
#include "tests/sim/pair.h"
#include "wire/packet/icrc.h"

namespace {

using namespace nicless;
using fuzz::Input;
using fuzz::require;
using sim::Packet;
using sim::Side;

constexpr std::size_t kMemoryBytes = 8192;
constexpr std::size_t kStepsMax = 400;
constexpr std::size_t kKeptMax = 64;  // packets that may still be delivered, per direction

constexpr std::uint32_t kRemote = queue::kAccessRemoteWrite | queue::kAccessRemoteRead | queue::kAccessRemoteAtomic;
constexpr std::uint32_t kOpen = kRemote | queue::kAccessLocalWrite | queue::kAccessMwBind;

// One end, and what its program has seen so far.
struct End : fuzz::Program {
  explicit End(Side& a_side)
      : side(a_side),
        open(side.make_buffer(kMemoryBytes, kOpen)),
        closed(side.make_buffer(kMemoryBytes, 0)),
        window(*side.regions().add_window(queue::PdId{1}, queue::WindowType::Type2)) {}

  Side& side;
  sim::Buffer open;
  sim::Buffer closed;        // nobody has the right to write it
  queue::RKey window;        // over part of `open`, or not bound
  std::vector<Packet> kept;  // sent by this end, oldest first
};

class Fuzz {
 public:
  explicit Fuzz(Input input) : input_(input), pair_({.send_depth = 8, .recv_depth = 8, .sge_max = 4}, config()) {
    ends_[0] = std::make_unique<End>(pair_.a);
    ends_[1] = std::make_unique<End>(pair_.b);
  }

  void run() {
    for (std::size_t i = 0; i < kStepsMax && !input_.is_empty(); ++i) {
      step();
      for (auto& end : ends_) end->check_completions(end->side);
    }
    finish();
  }

 private:
  sim::ConnectionConfig config() {
    sim::ConnectionConfig config;
    const std::uint8_t bits = input_.u8();
    config.path_mtu = bits & 1 ? 256 : 1024;
    config.retry_cnt = bits & 2 ? 1 : 7;
    config.rnr_retry = bits & 4 ? 1 : 7;
    config.a_psn = bits & 8 ? 0xfffffe : 0x100;
    config.timeout = bits & 16 ? 8 : 14;
    config.max_rd_atomic = config.max_dest_rd_atomic = bits & 32 ? 1 : 4;
    return config;
  }

  void step() {
    const std::uint8_t op = input_.u8();
    const std::size_t who = op & 1;
    End& end = *ends_[who];
    End& peer = *ends_[1 - who];
    switch ((op >> 1) % 12) {
      case 0:
      case 1:
        return post_send(end, peer);
      case 2:
        return post_recv(end);
      case 3:
      case 4:
        return carry(end, peer, kKeptMax);
      case 5:
        return carry(end, peer, 1);
      case 6:
        keep_sent(end);  // lost, unless it is delivered later
        return;
      case 7:
        return deliver_kept(end, peer, false);
      case 8:
        return deliver_kept(end, peer, true);
      case 9:
        return forge(end, peer);
      case 10:
        return wait();
      default:
        return modify(end, peer);
    }
  }

  queue::Sge any_sge(End& end) {
    const std::uint8_t bits = input_.u8();
    sim::Buffer& buffer = bits & 0x40 && bits & 0x20 ? end.closed : end.open;
    queue::Sge sge = buffer.sge((bits & 7) * 512, (bits & 0x18) * 100u + (bits & 3));
    if (bits == 0xff) sge.lkey = queue::LKey(sge.lkey.value() ^ 0x1000);
    return sge;
  }

  void post_send(End& end, End& peer) {
    const std::uint8_t bits = input_.u8();
    using enum queue::SendOpcode;
    constexpr std::array kOpcodes{Send,        SendImm,  Write,   WriteImm, Read,
                                  CompareSwap, FetchAdd, SendInv, LocalInv, BindMw};
    std::vector<queue::Sge> sges(input_.u8() % 5);
    for (queue::Sge& sge : sges) sge = any_sge(end);
    queue::Wqe wqe;
    wqe.wr_id = end.sends;
    wqe.opcode = kOpcodes[input_.u8() % kOpcodes.size()];
    wqe.signaled = !(bits & 8);
    wqe.fence = bits & 16;
    wqe.sges = sges;
    wqe.compare_add = bits & 0x18;
    wqe.swap = wqe.compare_add + 1;
    wqe.remote_addr = peer.open.address((bits & 0x60) * 8u);
    wqe.rkey = bits & 0x80 ? peer.closed.rkey() : peer.open.rkey();
    if (bits & 7) wqe.imm_or_key = wqe.opcode == queue::SendOpcode::LocalInv ? end.window.value() : peer.window.value();
    if ((bits & 7) == 7) wqe.rkey = peer.window;
    if (wqe.opcode == queue::SendOpcode::BindMw) {
      wqe.sges = {};
      const queue::RKey next((end.window.value() & ~0xffu) | ((end.window.value() + (bits & 3)) & 0xff));
      queue::Binding{next, end.open.lkey(), end.open.address(bits), bits * 16u, kRemote}.put_into(wqe);
    }
    if (!end.side.post_send(pair_.now, wqe)) return;
    ++end.sends;
    if (wqe.opcode == queue::SendOpcode::BindMw) end.window = wqe.rkey;
  }

  void post_recv(End& end) {
    std::vector<queue::Sge> sges(input_.u8() % 5);
    for (queue::Sge& sge : sges) sge = any_sge(end);
    if (end.side.post_recv(end.recvs, sges)) ++end.recvs;
  }

  std::vector<Packet> keep_sent(End& end) {
    auto sent = pair_.take(end.side);
    end.kept.insert(end.kept.end(), sent.begin(), sent.end());
    if (end.kept.size() > kKeptMax) end.kept.erase(end.kept.begin(), end.kept.end() - kKeptMax);
    return sent;
  }

  void carry(End& end, End& peer, std::size_t most) {
    const auto sent = keep_sent(end);
    for (std::size_t i = 0; i < std::min(most, sent.size()); ++i) pair_.give(peer.side, sent[i]);
  }

  void deliver_kept(End& end, End& peer, bool change) {
    if (end.kept.empty()) return;
    Packet packet = end.kept[input_.u8() % end.kept.size()];
    if (change) spoil(packet);
    pair_.give(peer.side, packet);
  }

  void spoil(Packet& packet) {
    wire::Headers& headers = packet.headers;
    const std::uint8_t value = input_.u8();
    switch (input_.u8() % 9) {
      case 0:
        if (wire::find_opcode(value & 0x1f) != nullptr) headers.bth.opcode = value & 0x1f;
        break;
      case 1:
        headers.bth.psn = wire::Psn(headers.bth.psn.value() + value - 128);
        break;
      case 2:
        packet.payload.resize(value * 5);
        break;
      case 3:
        headers.reth.length += value - 128u;
        break;
      case 4:
        headers.reth.address += value - 128u;
        break;
      case 5:
        headers.aeth.syndrome = value;
        break;
      case 6:
        headers.reth.rkey = queue::RKey(headers.reth.rkey.value() ^ value);
        break;
      case 7:
        headers.bth.ack_req = !headers.bth.ack_req;
        break;
      default:
        headers.reth.length = std::uint32_t{value} << 24;
        break;
    }
    headers.bth.pad_count = wire::pad_for(packet.payload.size());
  }

  // A packet nobody sent, near what is expected.
  void forge(End& end, End& peer) {
    const auto attributes = peer.side.qp().attributes();
    const std::uint8_t bits = input_.u8();
    const std::uint32_t base = bits & 0x80 ? attributes.sq_psn : attributes.rq_psn;
    Packet packet = sim::make_packet(static_cast<wire::Op>(bits & 0x1f), peer.side.qpn(), base + input_.u8() - 4);
    packet.payload.resize(input_.u16() % 1100, std::byte{0x77});
    packet.headers.bth.pad_count = wire::pad_for(packet.payload.size());
    packet.headers.bth.ack_req = bits & 0x20;
    packet.headers.reth = {peer.open.address(input_.u8() * 16u), peer.open.rkey(), input_.u16()};
    packet.headers.atomic = {peer.open.address(input_.u8() * 8u), peer.open.rkey(), 1, 2};
    packet.headers.aeth = {input_.u8(), input_.u8()};
    if (wire::find_opcode(packet.headers.bth.opcode) == nullptr) return;
    pair_.give_from(end.side.endpoint(), peer.side, packet);
  }

  void wait() {
    const std::uint8_t bits = input_.u8();
    auto next = queue::earliest(pair_.a.engine().next_deadline(), pair_.b.engine().next_deadline());
    if (bits & 1 && next) {
      pair_.wait(std::max(*next - pair_.now, queue::Duration(0)));
    } else {
      pair_.wait(std::chrono::microseconds(bits));
    }
  }

  void modify(End& end, End& peer) {
    const std::uint8_t bits = input_.u8();
    if (bits < 200) {  // most of the time the connection lives on
      if (bits < 8) end.side.regions().remove(end.open.lkey());
      return;
    }
    if (bits >= 240) {  // both start afresh
      for (End* each : {&end, &peer}) {
        require(each->side.to_state(pair_.now, wire::QpState::Reset).has_value(), "RESET was refused");
        each->forget(each->side);
      }
      const std::uint32_t psn = input_.u16() << 8;
      end.side.connect(pair_.now, peer.side, {}, psn, psn);
      peer.side.connect(pair_.now, end.side, {}, psn, psn);
      return;
    }
    constexpr std::array kStates{wire::QpState::Err, wire::QpState::Sqd, wire::QpState::Rts, wire::QpState::Rts};
    static_cast<void>(end.side.to_state(pair_.now, kStates[bits & 3]));
  }

  // Whatever happened: in ERR everything that was posted completes, nothing is armed, and closed memory is as it was.
  void finish() {
    for (auto& end : ends_) {
      require(end->side.to_state(pair_.now, wire::QpState::Err).has_value(), "ERR was refused");
      end->check_completions(end->side);
      require(end->side.send_queue().empty(), "a send was not flushed");
      require(end->recv_seen == end->recvs, "a receive was not flushed");
      require(!end->side.engine().next_deadline(), "a timer runs in ERR");
      const auto bytes = end->closed.bytes();
      require(std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0xa5}; }),
              "memory without the right to write was written");
    }
  }

  Input input_;
  sim::ExactPair pair_;
  std::unique_ptr<End> ends_[2];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzz(Input(data, size)).run();
  return 0;
}

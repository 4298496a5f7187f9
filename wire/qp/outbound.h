// SPDX-License-Identifier: MIT
// Builds the packets of outgoing messages, sends and writes: which operation, which headers, which bytes. Knows no PSN
// window and no answers: those are the requester's, of whichever transport. IBTA 9.3, 9.4, 9.7.3. Port-bound.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "queue/result.h"
#include "wire/qp/parts.h"

namespace nicless::wire {

class Outbound {
 public:
  // What a packet carries besides its part of the message.
  struct Numbers {
    Service service = Service::Rc;
    Psn psn{};
    bool wants_ack = false;
    queue::Srqn srqn{};  // XRC requests
  };

  Outbound(const QpParts& parts, const QpAttributes& attributes)
      : parts_(parts), attributes_(attributes), cursor_(send_sge_max(parts)) {}

  // Looks up the list of a work request, named by its sequence number in the send queue. access: 0, or
  // kAccessLocalWrite where the list receives. Nothing if all of it may be used.
  std::optional<queue::SgFault> look_up(std::uint64_t seq, const queue::Wqe& wqe, std::uint32_t access);

  // The packet with this index in its message; a fault if the list may not be used, or no longer.
  std::optional<queue::SgFault> build(std::uint64_t seq, const queue::Wqe& wqe, std::uint64_t packet,
                                      const Numbers& numbers, OutDatagram& out);
  // Only the bytes of a part of the message, into a datagram that has no payload yet.
  std::optional<queue::SgFault> append_bytes(std::uint64_t seq, const queue::Wqe& wqe, std::uint64_t offset,
                                             std::uint64_t length, OutDatagram& out);
  // Binds or invalidates a window: the whole of such a request. EINVAL: why it fails with MW_BIND_ERR.
  queue::Result<void> carry_out(const queue::Wqe& wqe);
  bool is_last(const queue::Wqe& wqe, std::uint64_t packet) const {
    return (packet + 1) * attributes_.path_mtu >= wqe.length;
  }
  void reset() { cursor_seq_.reset(), middle_seq_.reset(); }

 private:
  void build_headers(const queue::Wqe& wqe, std::uint64_t packet, const Numbers& numbers, OutDatagram& out);
  void build_next_middle(const Numbers& numbers, OutDatagram& out);

  const QpParts& parts_;
  const QpAttributes& attributes_;
  queue::SgCursor cursor_;  // over the list of work request cursor_seq_
  std::optional<std::uint64_t> cursor_seq_;
  // The header of a middle packet of work request middle_seq_: the others differ from it in PSN and ack request only.
  std::array<std::byte, Bth::kSize + XrcEth::kSize> middle_header_{};
  std::size_t middle_header_bytes_ = 0;
  std::optional<std::uint64_t> middle_seq_;
};

// Requests that send nothing.
constexpr bool is_local(const queue::Wqe& wqe) {
  return wqe.opcode == queue::SendOpcode::BindMw || wqe.opcode == queue::SendOpcode::LocalInv;
}
// The sentence of a local request that failed.
std::string describe_failure(const queue::Wqe& wqe, const queue::Error& error);

// BTH of a packet to the peer of a connected queue pair.
Headers headers_for(const QpAttributes& attributes, Op op, const Outbound::Numbers& numbers);

}  // namespace nicless::wire

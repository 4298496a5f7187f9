// SPDX-License-Identifier: MIT
// ibv_post_send and ibv_post_recv: the calling thread takes the port's lock and is the engine until what it posted has
// been sent.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "provider/ah.h"
#include "provider/enum_number.h"
#include "provider/mw.h"
#include "provider/objects.h"
#include "provider/post.h"
#include "provider/qp.h"
#include "provider/scatter_list.h"
#include "wire/io/clock.h"

namespace nicless::provider {
namespace {

constexpr unsigned kSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | IBV_SEND_IP_CSUM;

constexpr std::uint32_t kSrqnMask = 0xffffff;  // the rest is reserved in a packet's header

// A work request in our form. The storage that its spans point at lives as long as this does.
class SendRequest {
 public:
  explicit SendRequest(const Qp& qp) : sge_max_(qp.send_queue->limits().sge_max) {}

  Result<void> read(ibv_qp_type type, const ibv_send_wr& wr) {
    if (const auto opcode = number_of(wr.opcode); opcode > IBV_WR_SEND_WITH_INV) {
      return queue::error(EINVAL, "opcode " + std::to_string(opcode) + " is not supported");
    }
    if ((wr.send_flags & ~kSendFlags) != 0) return queue::error(EINVAL, "send_flags has bits that mean nothing");
    wqe_ = {};
    wqe_.wr_id = wr.wr_id;
    wqe_.opcode = static_cast<queue::SendOpcode>(wr.opcode);
    wqe_.signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0;
    wqe_.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
    wqe_.fence = (wr.send_flags & IBV_SEND_FENCE) != 0;
    wqe_.imm_or_key = wr.imm_data;                 // a union with invalidate_rkey
    if (wr.opcode == IBV_WR_LOCAL_INV) return {};  // has no message
    if (wr.opcode == IBV_WR_BIND_MW) return read_bind(wr);
    if (type == IBV_QPT_XRC_SEND) wqe_.remote_srqn = queue::Srqn(wr.qp_type.xrc.remote_srqn & kSrqnMask);
    if (type != IBV_QPT_UD) {
      read_remote(wr);
    } else if (auto addressed = read_address(wr); !addressed) {
      return addressed;
    }
    return (wr.send_flags & IBV_SEND_INLINE) != 0 ? read_inline(wr) : read_list(wr);
  }

  const queue::Wqe& wqe() const { return wqe_; }

 private:
  void read_remote(const ibv_send_wr& wr) {
    switch (wr.opcode) {
      case IBV_WR_RDMA_WRITE:
      case IBV_WR_RDMA_WRITE_WITH_IMM:
      case IBV_WR_RDMA_READ:
        wqe_.remote_addr = wr.wr.rdma.remote_addr;
        wqe_.rkey = queue::RKey(wr.wr.rdma.rkey);
        return;
      case IBV_WR_ATOMIC_CMP_AND_SWP:
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        wqe_.remote_addr = wr.wr.atomic.remote_addr;
        wqe_.rkey = queue::RKey(wr.wr.atomic.rkey);
        wqe_.compare_add = wr.wr.atomic.compare_add;
        wqe_.swap = wr.wr.atomic.swap;
        return;
      default:
        return;
    }
  }

  Result<void> read_bind(const ibv_send_wr& wr) {
    const auto binding = binding_from(wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info);
    if (!binding) return binding.error();
    binding->put_into(wqe_);
    return {};
  }

  Result<void> read_address(const ibv_send_wr& wr) {
    if (wr.wr.ud.ah == nullptr) return queue::error(EINVAL, "a datagram needs an address handle: wr.ud.ah is null");
    wqe_.datagram = datagram_to(*wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    return {};
  }

  Result<void> read_list(const ibv_send_wr& wr) {
    auto list = ScatterList::from(wr.sg_list, wr.num_sge, sge_max_, ENOMEM);
    if (!list) return list.error();
    list_ = *list;
    wqe_.sges = list_.sges();
    return {};
  }

  // Inline data is read here and now, from memory that need not be registered.
  Result<void> read_inline(const ibv_send_wr& wr) {
    auto list = ScatterList::from(wr.sg_list, wr.num_sge, std::max(sge_max_, 1u), ENOMEM);
    if (!list) return list.error();
    std::size_t length = 0;
    for (const queue::Sge& sge : list->sges()) {
      if (sge.length > inline_data_.size() - length) {
        return queue::error(ENOMEM, "inline data is longer than max_inline_data can be, which is " +
                                        std::to_string(inline_data_.size()) + " bytes");
      }
      if (sge.length != 0) std::memcpy(&inline_data_[length], reinterpret_cast<const void*>(sge.addr), sge.length);
      length += sge.length;
    }
    wqe_.has_inline_data = true;
    wqe_.inline_data = std::span(inline_data_).first(length);
    return {};
  }

  const std::uint32_t sge_max_;
  queue::Wqe wqe_;
  ScatterList list_;
  std::array<std::byte, queue::kInlineBytesMax> inline_data_;
};

Result<void> append(Qp& qp, SendRequest& request, const ibv_send_wr& wr) {
  if (auto read = request.read(qp.init.qp_type, wr); !read) return read;
  if (auto allowed = qp.transport->check_post_send(request.wqe()); !allowed) return allowed;
  return qp.send_queue->post(request.wqe());
}

Result<void> append(Qp& qp, const ibv_recv_wr& wr) {
  if (wire::service_of(qp.transport->transport()) == wire::Service::Xrc) {
    return queue::error(ENOMEM,
                        "an XRC queue pair takes no receives; post to an SRQ of its domain (ibv_post_srq_recv)");
  }
  if (qp.receive_queue == nullptr) {
    // A queue of no entries to mlx5, and so a full one.
    return queue::error(ENOMEM, "this queue pair receives from an SRQ; post there (ibv_post_srq_recv)");
  }
  if (auto allowed = qp.transport->check_post_recv(); !allowed) return allowed;
  return post_list(*qp.receive_queue, wr);
}

// nicless run --fail: those posted from `first` on are counted, and one of them may have to fail.
void force_failures(Qp& qp, std::uint64_t first) {
  ProcessFaults& faults = qp.context->runtime.faults();
  if (!faults.has_failures()) return;
  for (std::uint64_t seq = first; seq < qp.send_queue->posted(); ++seq) {
    if (const auto status = faults.next_send()) qp.send_queue->force_status(seq, *status);
  }
}

// Lets the engine send what was appended: f appends, with the port's lock held.
template <typename F>
Result<void> append_and_send(Qp& qp, F&& f) {
  wire::UdpPort& port = *qp.seat.port;
  wire::TurnReport report;
  Result<void> posted;
  {
    queue::MutexLock lock(port.mutex);
    const std::uint64_t first = qp.send_queue->posted();
    posted = f();
    force_failures(qp, first);
    const queue::Instant now = wire::now();
    port.engine().on_post(now, qp.seat.qpn);
    report = port.send(now);
  }
  qp.context->runtime.settle(port, report);
  return posted;
}

}  // namespace

Result<void> post_send(ibv_qp* verbs, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  Qp& qp = qp_of(verbs);
  *bad_wr = wr;
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  if (qp.send_queue == nullptr) return qp.transport->check_post_send({});
  SendRequest request(qp);
  // What stands before the first that is not taken is posted.
  return append_and_send(qp, [&] {
    Result<void> posted;
    for (; wr != nullptr && posted; wr = wr->next) {
      *bad_wr = wr;
      posted = append(qp, request, *wr);
    }
    return posted;
  });
}

Result<void> post_built(Qp& qp, std::span<const queue::Wqe> requests) {
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  return append_and_send(qp, [&]() -> Result<void> {
    for (const queue::Wqe& request : requests) {
      if (auto allowed = qp.transport->check_post_send(request); !allowed) return allowed;
    }
    return qp.send_queue->post_all(requests);
  });
}

Result<void> post_recv(ibv_qp* verbs, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Qp& qp = qp_of(verbs);
  *bad_wr = wr;
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  Result<void> posted;
  queue::MutexLock lock(qp.seat.port->mutex);
  for (; wr != nullptr && posted; wr = wr->next) {
    *bad_wr = wr;
    posted = append(qp, *wr);
  }
  qp.transport->on_recv_posted();
  return posted;
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
// What a queue pair is made of and what its two halves share. Port-bound.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "queue/async_events.h"
#include "queue/completion_queue.h"
#include "queue/memory_region.h"
#include "queue/receive_queue.h"
#include "queue/scatter_gather.h"
#include "queue/send_queue.h"
#include "queue/xrc_domain.h"
#include "wire/packet/datagram.h"
#include "wire/qp/attributes.h"
#include "wire/qp/flight_budget.h"

namespace nicless::wire {

// All of it outlives the queue pair.
struct QpParts {
  queue::Qpn qpn{};
  queue::PdId pd{};
  queue::SendQueue* send_queue = nullptr;       // none of an XRC target
  queue::ReceiveSource* receives = nullptr;     // its own receive queue or an SRQ; neither where it is XRC
  queue::ReceiveQueue* own_receives = nullptr;  // the same queue where it is its own, else null
  queue::CompletionQueue* recv_cq = nullptr;
  std::optional<queue::PdId> srq_pd;       // of the SRQ: its lists are looked up there
  queue::XrcDomain* xrc_domain = nullptr;  // of an XRC target: whose SRQs it delivers to
  queue::MrTable* regions = nullptr;
  queue::AsyncEvents* async_events = nullptr;
  FlightBudget* flight = nullptr;  // of its port; only reliable connections need one
  void* handle = nullptr;          // the ibv_qp that events name
  std::uint16_t port_mtu = 4096;   // bytes: the largest datagram of an unreliable datagram queue pair
};

// Entries in the longest list that it may send from, or receive into.
std::uint32_t send_sge_max(const QpParts& parts);
std::uint32_t receive_sge_max(const QpParts& parts);

// Where the receives of a message come from and complete, and whose regions it may touch. An XRC target has another one
// for each SRQ.
struct Receiving {
  queue::ReceiveSource* receives = nullptr;
  queue::CompletionQueue* cq = nullptr;
  queue::MrTable* regions = nullptr;
  queue::PdId list_pd{};    // of posted lists
  queue::PdId remote_pd{};  // of what a request reads and writes
};
Receiving receiving_of(const QpParts& parts);
Receiving receiving_of(const queue::XrcDomain::Member& srq);

// Sentences about what went wrong, for whoever holds the port to log once its work is done. Only so many are kept until
// they are taken: a peer may be wrong as often as it likes.
class Reasons {
 public:
  static constexpr std::size_t kKeptMax = 16;
  explicit Reasons(queue::Qpn qpn) : qpn_(qpn) {}
  // A printf pattern; "qp 0x8f1203 " is put before it.
  [[gnu::format(printf, 2, 3)]] void add(const char* pattern, ...);
  void add_forced(const queue::Wqe& wqe);  // its status was forced
  std::vector<std::string> take();

 private:
  queue::Qpn qpn_;
  std::vector<std::string> sentences_;
};

// "sge[1] (lkey 0x12, address 0x7f.., 100 bytes): the key is not registered".
std::string describe(const queue::SgFault& fault);

// The headers and addresses that every packet of a connected queue pair has.
void begin_datagram(const QpAttributes& attributes, OutDatagram& out);
// Appends to the payload: one span, as long as the datagram has room for it.
void append_payload(OutDatagram& out, std::span<const std::byte> bytes);

// How many packets a message of so many bytes takes: one at least. IBTA 9.7.1.
constexpr std::uint64_t packets_for(std::uint64_t bytes, std::uint32_t mtu_bytes) {
  return bytes == 0 ? 1 : (bytes + mtu_bytes - 1) / mtu_bytes;
}

}  // namespace nicless::wire

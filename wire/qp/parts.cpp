// SPDX-License-Identifier: MIT
#include "wire/qp/parts.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "queue/check.h"
#include "queue/format.h"
#include "queue/wc_status.h"

namespace nicless::wire {

std::uint32_t send_sge_max(const QpParts& parts) {
  return parts.send_queue == nullptr ? 0 : parts.send_queue->limits().sge_max;
}

std::uint32_t receive_sge_max(const QpParts& parts) {
  if (parts.xrc_domain != nullptr) return queue::kSgeMax;  // SRQs come and go, each with a limit of its own
  return parts.receives == nullptr ? 0 : parts.receives->sge_max();
}

Receiving receiving_of(const QpParts& parts) {
  return {parts.receives, parts.recv_cq, parts.regions, parts.srq_pd.value_or(parts.pd), parts.pd};
}

Receiving receiving_of(const queue::XrcDomain::Member& srq) {
  return {srq.receives, srq.cq, srq.regions, srq.pd, srq.pd};
}

void Reasons::add(const char* pattern, ...) {
  if (sentences_.size() == kKeptMax) return;
  char text[512];
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  sentences_.push_back(queue::format("qp 0x%06x %s", qpn_.value(), text));
}

void Reasons::add_forced(const queue::Wqe& wqe) {
  add("send wr_id 0x%llx: completes with %s because nicless run --fail asked for it",
      static_cast<unsigned long long>(wqe.wr_id), queue::word_of(wqe.forced_status));
}

std::vector<std::string> Reasons::take() {
  return std::exchange(sentences_, {});
}

std::string describe(const queue::SgFault& fault) {
  return queue::format("sge[%u] (lkey 0x%x, address 0x%llx, %u bytes): the key %s", fault.index, fault.sge.lkey.value(),
                       static_cast<unsigned long long>(fault.sge.addr), fault.sge.length, queue::describe(fault.fault));
}

void begin_datagram(const QpAttributes& attributes, OutDatagram& out) {
  out.from = Endpoint{attributes.path.local, attributes.source_port};  // of ports the engine decides
  out.to = Endpoint{attributes.path.remote, 0};
  out.ip = attributes.path.ip;
  out.span_count = 0;
  out.payload_bytes = 0;
}

void append_payload(OutDatagram& out, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  NICLESS_CHECK(out.span_count < out.spans.size());
  out.spans[out.span_count++] = bytes;
  out.payload_bytes += bytes.size();
}

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "wire/io/faults.h"

#include <algorithm>
#include <utility>

#include "wire/packet/icrc.h"

namespace nicless::wire {
namespace {

// As a batch carries sealed bytes: all but the last four are payload, those four the trailer, which holds the ICRC,
// good or not.
void lay_out(const LinkDatagram& datagram, OutDatagram& out) {
  const std::span<const std::byte> bytes = datagram.bytes;
  const std::span<const std::byte> icrc = bytes.last(kIcrcBytes);
  out.from = datagram.from;
  out.to = datagram.to;
  out.ip = datagram.ip;
  out.header_bytes = 0;
  out.spans[0] = bytes.first(bytes.size() - kIcrcBytes);
  out.span_count = 1;
  out.payload_bytes = out.spans[0].size();
  out.pad_bytes = 0;
  std::copy(icrc.begin(), icrc.end(), out.trailer.begin());
}

}  // namespace

void Faults::take(queue::Instant now, SendBatch& batch) {
  for (OutDatagram& datagram : batch.datagrams()) {
    seal(datagram, 0);
    link_.send(now, {datagram.from, datagram.to, to_bytes(datagram), datagram.ip});
  }
  batch.clear();
}

void Faults::fill(queue::Instant due, SendBatch& batch) {
  leaving_.clear();
  while (leaving_.size() < SendBatch::kDatagramsMax) {
    auto datagram = link_.take(due);
    if (!datagram) break;
    leaving_.push_back(std::move(*datagram));
  }
  for (const LinkDatagram& datagram : leaving_) {
    lay_out(datagram, batch.slot());
    batch.keep();
  }
}

}  // namespace nicless::wire

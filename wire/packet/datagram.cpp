// SPDX-License-Identifier: MIT
#include "wire/packet/datagram.h"

#include <algorithm>

#include "queue/guarded_copy.h"

namespace nicless::wire {

void finish_headers(Headers headers, OutDatagram& out) {
  out.dest_qp = headers.bth.dest_qp;
  out.payload_bytes = 0;
  for (std::size_t i = 0; i < out.span_count; ++i) out.payload_bytes += out.spans[i].size();
  out.pad_bytes = pad_for(out.payload_bytes);
  headers.bth.pad_count = out.pad_bytes;
  out.header_bytes = encode(headers, out.header);
  std::ranges::fill(out.trailer, std::byte{0});
}

std::vector<std::byte> to_bytes(const OutDatagram& datagram) {
  std::vector<std::byte> bytes;
  bytes.reserve(datagram.size());
  bytes.insert(bytes.end(), datagram.header.begin(),
               datagram.header.begin() + static_cast<std::ptrdiff_t>(datagram.header_bytes));
  for (std::size_t i = 0; i < datagram.span_count; ++i) {
    const std::size_t at = bytes.size();
    bytes.resize(at + datagram.spans[i].size());
    static_cast<void>(queue::copy_from(datagram.spans[i], bytes.data() + at));
  }
  const auto trailer = datagram.trailer_view();
  bytes.insert(bytes.end(), trailer.begin(), trailer.end());
  return bytes;
}

}  // namespace nicless::wire

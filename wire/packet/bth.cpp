// SPDX-License-Identifier: MIT
#include "wire/packet/bth.h"

#include "wire/packet/byte_io.h"

namespace nicless::wire {

Bth Bth::decode(std::span<const std::byte, kSize> in) {
  const FixedReader<kSize> r(in);
  const std::uint8_t flags = r.u8<1>();
  Bth bth;
  bth.opcode = r.u8<0>();
  bth.solicited = (flags & 0x80) != 0;
  bth.mig_req = (flags & 0x40) != 0;
  bth.pad_count = (flags >> 4) & 3;
  bth.version = flags & 0x0f;
  bth.pkey = r.u16<2>();
  bth.reserved8a = r.u8<4>();
  bth.dest_qp = queue::Qpn(r.u24<5>());
  bth.ack_req = (r.u8<8>() & 0x80) != 0;
  bth.psn = Psn(r.u24<9>());
  return bth;
}

void Bth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w(out);
  w.u8<0>(opcode);
  w.u8<1>(static_cast<std::uint8_t>((solicited ? 0x80 : 0) | (mig_req ? 0x40 : 0) | ((pad_count & 3) << 4) |
                                    (version & 0x0f)));
  w.u16<2>(pkey);
  w.u8<4>(reserved8a);
  w.u24<5>(dest_qp.value());
  w.u8<8>(ack_req ? 0x80 : 0);
  w.u24<9>(psn.value());
}

void Bth::renumber(std::span<std::byte, kSize> encoded, Psn psn, bool ack_req) {
  constexpr std::size_t kAckReqAt = 8;
  FixedWriter<kSize - kAckReqAt> w(encoded.subspan<kAckReqAt>());
  w.u8<0>(ack_req ? 0x80 : 0);
  w.u24<1>(psn.value());
}

}  // namespace nicless::wire

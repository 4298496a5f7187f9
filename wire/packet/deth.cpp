// SPDX-License-Identifier: MIT
#include "wire/packet/deth.h"

#include "wire/packet/byte_io.h"

namespace nicless::wire {

Deth Deth::decode(std::span<const std::byte, kSize> in) {
  const FixedReader<kSize> r(in);
  return {r.u32<0>(), queue::Qpn(r.u24<5>())};
}

void Deth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w(out);
  w.u32<0>(qkey);
  w.u24<5>(src_qp.value());
}

}  // namespace nicless::wire

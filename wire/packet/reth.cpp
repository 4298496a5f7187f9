// SPDX-License-Identifier: MIT
#include "wire/packet/reth.h"

#include "wire/packet/byte_io.h"

namespace nicless::wire {

Reth Reth::decode(std::span<const std::byte, kSize> in) {
  const FixedReader<kSize> r(in);
  return {r.u64<0>(), queue::RKey(r.u32<8>()), r.u32<12>()};
}

void Reth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w(out);
  w.u64<0>(address);
  w.u32<8>(rkey.value());
  w.u32<12>(length);
}

}  // namespace nicless::wire

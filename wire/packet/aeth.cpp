// SPDX-License-Identifier: MIT
#include "wire/packet/aeth.h"

#include "wire/packet/byte_io.h"

namespace nicless::wire {

Aeth Aeth::decode(std::span<const std::byte, kSize> in) {
  const FixedReader<kSize> r(in);
  return {r.u8<0>(), r.u24<1>()};
}

void Aeth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w(out);
  w.u8<0>(syndrome);
  w.u24<1>(msn);
}

}  // namespace nicless::wire

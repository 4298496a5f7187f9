// SPDX-License-Identifier: MIT
#include "wire/packet/xrceth.h"

#include "wire/packet/byte_io.h"

namespace nicless::wire {

XrcEth XrcEth::decode(std::span<const std::byte, kSize> in) {
  return {queue::Srqn(FixedReader<kSize>(in).u24<1>())};
}

void XrcEth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize>(out).u24<1>(srqn.value());
}

}  // namespace nicless::wire

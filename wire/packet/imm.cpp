// SPDX-License-Identifier: MIT
#include "wire/packet/imm.h"

#include <cstring>

#include "wire/packet/byte_io.h"

namespace nicless::wire {

Imm Imm::decode(std::span<const std::byte, kSize> in) {
  Imm imm;
  std::memcpy(&imm.network_order, in.data(), kSize);  // the bytes as they are: nobody here reads them as a number
  return imm;
}

void Imm::encode(std::span<std::byte, kSize> out) const {
  std::memcpy(out.data(), &network_order, kSize);
}

Ieth Ieth::decode(std::span<const std::byte, kSize> in) {
  return {queue::RKey(FixedReader<kSize>(in).u32<0>())};
}

void Ieth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize>(out).u32<0>(rkey.value());
}

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "wire/packet/atomic_eth.h"

#include "wire/packet/byte_io.h"

namespace nicless::wire {

AtomicEth AtomicEth::decode(std::span<const std::byte, kSize> in) {
  const FixedReader<kSize> r(in);
  return {r.u64<0>(), queue::RKey(r.u32<8>()), r.u64<12>(), r.u64<20>()};
}

void AtomicEth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w(out);
  w.u64<0>(address);
  w.u32<8>(rkey.value());
  w.u64<12>(swap_add);
  w.u64<20>(compare);
}

AtomicAckEth AtomicAckEth::decode(std::span<const std::byte, kSize> in) {
  return {FixedReader<kSize>(in).u64<0>()};
}

void AtomicAckEth::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize>(out).u64<0>(original);
}

}  // namespace nicless::wire

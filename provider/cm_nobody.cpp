// SPDX-License-Identifier: MIT
#include "provider/cm_nobody.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "provider/runtime.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/raw_gid.h"

namespace nicless::provider {
namespace {

wire::Endpoint to_endpoint(const nicless_endpoint& plain) {
  return {wire::from_raw(plain.address), plain.port};
}

// What cannot be sent is as good as lost on the way: the peer asks again.
void answer(void* runtime, std::uint64_t, nicless_gsi* at, const nicless_endpoint* remote,
            const nicless_endpoint* local, const std::uint8_t* mad) {
  wire::MadBytes asked;
  std::memcpy(asked.data(), mad, asked.size());
  const wire::DecodedCm decoded = wire::decode_cm(asked);
  if (!decoded) return;
  const auto reply = wire::answer_of_nobody(decoded.message);
  if (!reply) return;
  static_cast<void>(static_cast<Runtime*>(runtime)->send_mad(
      *at->port, {to_endpoint(*local), to_endpoint(*remote), {}, wire::encode(*reply)}));
}

void ignore_unreachable(void*, std::uint64_t, const nicless_endpoint*) {}
void ignore_deadline(void*, std::uint64_t) {}
std::uint64_t no_deadline(void*) {
  return NICLESS_NEVER;
}

constexpr nicless_cm_agent kCalls{answer, ignore_unreachable, ignore_deadline, no_deadline};

}  // namespace

const nicless_cm_agent& cm_of_nobody() {
  return kCalls;
}

}  // namespace nicless::provider

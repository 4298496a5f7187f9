// SPDX-License-Identifier: MIT
// Device memory behind its handle: ibv_alloc_dm(3). Ours is memory of the host, zeroed, that the program does not see.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "provider/context.h"

namespace nicless::provider {

inline constexpr std::size_t kDeviceMemoryBytesMax = std::size_t{1} << 20;  // max_dm_size, of one allocation

struct Dm {
  Dm(Context& the_context, std::size_t the_size) : context(the_context), size(the_size) {}
  std::byte* start() const { return bytes.get(); }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  ibv_dm verbs{};
  const ContextHold context;
  const std::size_t size;
  std::unique_ptr<std::byte, Free> bytes;
  std::atomic<std::uint32_t> users{0};  // regions
};

inline Dm& dm_of(ibv_dm* dm) {
  return *reinterpret_cast<Dm*>(dm);
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "wire/packet/endpoint.h"

namespace nicless::cm {

// Where tables keyed by addresses put them.
struct EndpointHash {
  std::size_t operator()(const wire::Gid& gid) const {
    std::uint64_t halves[2];
    std::memcpy(halves, gid.bytes.data(), sizeof halves);
    return std::hash<std::uint64_t>{}((halves[0] * 0x9e3779b97f4a7c15) ^ halves[1]);
  }
  std::size_t operator()(const wire::Endpoint& endpoint) const {
    return (*this)(endpoint.address) * 31 + endpoint.port;
  }
};

}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
// The answer of a verb that this provider lacks, in the shape of its kind.
#pragma once

#include <cerrno>
#include <type_traits>

#include "provider/errno_shapes.h"

namespace nicless::provider {

inline constexpr const char* kNotSupported = "nicless does not support this";

// NULL with errno set for a verb that makes something, the errno value for one that does something. why: what stands
// in the way, for the person who reads it.
template <typename R>
R refusal(const char* name, const char* why = kNotSupported) noexcept {
  const queue::Error not_ours{EOPNOTSUPP, why};
  if constexpr (std::is_void_v<R>) {
    report(name, not_ours);
  } else if constexpr (std::is_pointer_v<R>) {
    errno = report(name, not_ours);
    return nullptr;
  } else {
    return report(name, not_ours);
  }
}

// -1 with errno set: a verb that gives a descriptor.
inline int refused_descriptor(const char* name, const char* why) noexcept {
  errno = refusal<int>(name, why);
  return -1;
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
// The answer of a verb that this provider lacks, in the shape of its kind.
#pragma once

#include <cerrno>
#include <type_traits>

#include "provider/errno_shapes.h"

namespace nicless::provider {

// NULL with errno set for a verb that makes something, the errno value for one that does something.
template <typename R>
R refusal(const char* name) noexcept {
  const queue::Error not_ours{EOPNOTSUPP, "nicless does not support this yet"};
  if constexpr (std::is_void_v<R>) {
    report(name, not_ours);
  } else if constexpr (std::is_pointer_v<R>) {
    errno = report(name, not_ours);
    return nullptr;
  } else {
    return report(name, not_ours);
  }
}

}  // namespace nicless::provider

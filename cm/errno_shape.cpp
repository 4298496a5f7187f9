// SPDX-License-Identifier: MIT
#include "cm/errno_shape.h"

#include <cstring>

#include "provider/private.h"

namespace nicless::cm {

void fail(const char* call, const queue::Error& error) {
  // Nothing to read yet, and a signal, are no failures that anybody has to hear of.
  if (error.errno_value != EAGAIN && error.errno_value != EINTR) {
    const char* name = ::strerrorname_np(error.errno_value);
    const std::string sentence =
        std::string(call) + ": " + (name != nullptr ? name : "unknown error") + ", " + error.why;
    nicless_log(NICLESS_LOG_WARN, sentence.c_str());
  }
  errno = error.errno_value;
}

}  // namespace nicless::cm

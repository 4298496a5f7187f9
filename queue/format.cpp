// SPDX-License-Identifier: MIT
#include "queue/format.h"

#include <cstdarg>
#include <cstdio>

namespace nicless::queue {

std::string format(const char* pattern, ...) {
  char text[512];  // a sentence; what is longer is cut
  std::va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

}  // namespace nicless::queue

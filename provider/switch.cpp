// SPDX-License-Identifier: MIT
#include "provider/switch.h"

#include <cstdlib>
#include <string>

#include "provider/log.h"

namespace nicless::provider {

bool is_switched_on(const char* name, const char* what_it_does) {
  const char* const text = std::getenv(name);
  const std::string value = text == nullptr ? "" : text;
  if (value == "1") return true;
  if (!value.empty() && value != "0") {
    log(NICLESS_LOG_ERROR,
        std::string(name) + "=" + value + " is neither 1, which " + what_it_does + ", nor 0, which is taken");
  }
  return false;
}

}  // namespace nicless::provider

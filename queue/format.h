// SPDX-License-Identifier: MIT
// printf into a std::string, for the sentences that explain an error. Not for hot paths.
#pragma once

#include <string>

namespace nicless::queue {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...);

}  // namespace nicless::queue

// SPDX-License-Identifier: MIT
// Sentences for the person at the terminal: "nicless: <sentence>" on stderr, each once. NICLESS_LOG=error, warn, info
// or debug says how much; unset is error (the launcher sets warn). Any thread.
#pragma once

#include <string>

#include "provider/private.h"

namespace nicless::provider {

bool is_logged(nicless_log_level level);
void check_log_level();  // says so where NICLESS_LOG is none
void log(nicless_log_level level, const std::string& sentence);

// For a forked child, whose parent may have been in the middle of a sentence. Async-signal-safe.
void reset_log_after_fork();

}  // namespace nicless::provider

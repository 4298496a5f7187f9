// SPDX-License-Identifier: MIT
// Variables of the environment that switch something on. Any thread.
#pragma once

namespace nicless::provider {

// 1 is yes; unset, empty and 0 are no. Anything else is no, and a sentence: "NAME=value: 1 <what it does>, 0 does not".
bool is_switched_on(const char* name, const char* what_it_does);

}  // namespace nicless::provider

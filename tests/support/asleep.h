// SPDX-License-Identifier: MIT
// Whether another thread of this process sleeps in the kernel: what a test waits for before it wakes, signals or
// cancels that thread.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace nicless::tests {

inline bool is_asleep(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(stat, line);
  const auto end_of_name = line.rfind(')');
  return end_of_name != std::string::npos && line.size() > end_of_name + 2 && line[end_of_name + 2] == 'S';
}

}  // namespace nicless::tests

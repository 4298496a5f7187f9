// SPDX-License-Identifier: MIT
// A table of figures that a change may move on purpose only: kept in a file that a review sees, compared to the last
// digit. NICLESS_UPDATE_SNAPSHOT=1 writes the file anew.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace nicless::sim {

// What the file in tests/sim says; updated before, if that is asked for.
inline std::string snapshot(const std::string& file_name, const std::string& measured) {
  const std::string path = TEST_DATA_DIR "/sim/" + file_name;
  if (std::getenv("NICLESS_UPDATE_SNAPSHOT") != nullptr) std::ofstream(path) << measured;
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace nicless::sim

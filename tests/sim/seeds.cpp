// SPDX-License-Identifier: MIT
#include "tests/sim/seeds.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "tests/sim/commit.h"

namespace nicless::sim {

namespace {

constexpr std::uint64_t kSeedsByDefault = 50;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

std::vector<std::uint64_t> seeds_to_run() {
  return seeds_to_run(SEEDS_FILE);
}

// In the file: one a line; what follows it says what it once showed.
std::vector<std::uint64_t> seeds_to_run(const std::string& path) {
  if (const auto one = number_from_environment("NICLESS_SEED", 0)) return {one};
  std::vector<std::uint64_t> seeds;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') seeds.push_back(std::strtoull(line.c_str(), nullptr, 10));
  }
  const auto count = number_from_environment("NICLESS_SEEDS", kSeedsByDefault);
  for (std::uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

std::string replay_hint(std::uint64_t seed) {
  return replay_hint(seed, "build/tests/sim/test_sim '[sim]'");
}

std::string replay_hint(std::uint64_t seed, const std::string& command) {
  const std::string number = std::to_string(seed);
  return "seed " + number + ", commit " + kCommit + "; again: NICLESS_SEED=" + number + " " + command;
}

}  // namespace nicless::sim

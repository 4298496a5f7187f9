// SPDX-License-Identifier: MIT
// Which seeds a simulation runs, and how a failure is run again. NICLESS_SEED=n: that one alone; otherwise those of a
// file like seeds.txt, which run for ever, and then 1 to NICLESS_SEEDS (50). The fuzzers link this too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nicless::sim {

std::vector<std::uint64_t> seeds_to_run();  // tests/sim/seeds.txt
std::vector<std::uint64_t> seeds_to_run(const std::string& path);

// "seed 4711, commit 1a2b3c4; again: NICLESS_SEED=4711 build/tests/sim/test_sim '[sim]'"
std::string replay_hint(std::uint64_t seed);
std::string replay_hint(std::uint64_t seed, const std::string& command);

}  // namespace nicless::sim

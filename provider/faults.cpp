// SPDX-License-Identifier: MIT
#include "provider/faults.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "provider/log.h"
#include "provider/runtime.h"
#include "queue/format.h"
#include "queue/rng.h"

namespace nicless::provider {
namespace {

// What a delay may hold back in one port: more is lost, as in the queue of a router.
constexpr std::size_t kHeldBackBytesMax = std::size_t{64} << 20;

// "loss" -> "NICLESS_LOSS".
std::string variable_of(std::string_view option) {
  std::string name = "NICLESS_";
  for (const char c : option) name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

unsigned long long whole(std::uint64_t number) {
  return number;
}

}  // namespace

queue::Result<std::unique_ptr<ProcessFaults>> ProcessFaults::from_environment() {
  wire::FaultOptions options;
  for (const std::string_view option : wire::kFaultOptionNames) {
    const std::string variable = variable_of(option);
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    if (auto set = wire::set_fault_option(option, value, options); !set) {
      return queue::error(set.error().errno_value, variable + ": " + set.error().why);
    }
  }
  if (options.has_chance() && !options.has_seed) {
    options.link.seed = random_u64() >> 32;
    // Whoever sees a failure needs it, whatever the level.
    log(NICLESS_LOG_ERROR, queue::format("faults have seed %llu; NICLESS_SEED=%llu gives the same ones again",
                                         whole(options.link.seed), whole(options.link.seed)));
  }
  options.link.queue_bytes = kHeldBackBytesMax;
  return std::make_unique<ProcessFaults>(std::move(options));
}

ProcessFaults::ProcessFaults(wire::FaultOptions options) : options_(std::move(options)) {}

std::unique_ptr<wire::Faults> ProcessFaults::make_port_faults() {
  if (!options_.has_link_faults()) return nullptr;
  wire::LinkConfig config = options_.link;
  config.seed = queue::Rng(config.seed + next_port_.fetch_add(1)).next_u64();
  return std::make_unique<wire::Faults>(config);
}

bool ProcessFaults::denies_receive() {
  if (denied_.load() >= options_.rnr) return false;
  if (denied_.fetch_add(1) < options_.rnr) return true;
  denied_.fetch_sub(1);  // another port was faster
  return false;
}

std::optional<queue::WcStatus> ProcessFaults::next_send() {
  const std::uint64_t number = sends_.fetch_add(1) + 1;
  for (const wire::FailAt& failure : options_.failures) {
    if (failure.number != number) continue;
    failed_.fetch_add(1);
    return failure.status;
  }
  return std::nullopt;
}

std::string ProcessFaults::summary(const wire::LinkCounters& link) const {
  std::string text = "faults:";
  if (options_.has_link_faults()) {
    text += queue::format(
        " of %llu datagrams sent %llu were lost, %llu sent twice, %llu delayed behind others, %llu "
        "corrupted;",
        whole(link.sent), whole(link.lost), whole(link.duplicated), whole(link.reordered), whole(link.corrupted));
    if (link.overflowed != 0) text += queue::format(" %llu found no room to wait;", whole(link.overflowed));
  }
  if (has_denials()) text += queue::format(" %llu messages found no receive;", whole(denied_.load()));
  if (has_failures()) {
    text +=
        queue::format(" %llu of %llu send requests were made to fail;", whole(failed_.load()), whole(sends_.load()));
  }
  text.pop_back();
  return text;
}

wire::LinkCounters operator+(const wire::LinkCounters& a, const wire::LinkCounters& b) {
  wire::LinkCounters sum = a;
  sum.sent += b.sent;
  sum.delivered += b.delivered;
  sum.lost += b.lost;
  sum.duplicated += b.duplicated;
  sum.reordered += b.reordered;
  sum.corrupted += b.corrupted;
  sum.overflowed += b.overflowed;
  sum.oversized += b.oversized;
  return sum;
}

}  // namespace nicless::provider

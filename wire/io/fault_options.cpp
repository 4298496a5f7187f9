// SPDX-License-Identifier: MIT
#include "wire/io/fault_options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "queue/wc_status.h"

namespace nicless::wire {
namespace {

using queue::Result;
using queue::WcStatus;

constexpr double kDelayMaxNs = 60e9;
constexpr double kPercent = 100;

queue::Error bad(std::string_view value, const std::string& why) {
  return queue::error(EINVAL, (value.empty() ? std::string("an empty value") : std::string(value)) + " " + why);
}

// All of the text as a number, or nothing. No sign, no exponent, no blanks.
template <typename T>
std::optional<T> number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos) return std::nullopt;
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<double> probability(std::string_view value) {
  if (value.ends_with('%')) {
    const auto percent = number<double>(value.substr(0, value.size() - 1));
    if (percent && *percent <= kPercent) return *percent / kPercent;
  }
  return bad(value, "is no percentage from 0% to 100%; write it with the sign, such as 0.5%");
}

Result<queue::Duration> delay(std::string_view value) {
  struct Unit {
    std::string_view name;
    double ns;
  };
  for (const Unit& unit : {Unit{"us", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}}) {
    if (!value.ends_with(unit.name)) continue;
    const auto amount = number<double>(value.substr(0, value.size() - unit.name.size()));
    if (amount && *amount * unit.ns <= kDelayMaxNs) {
      return queue::Duration(std::llround(*amount * unit.ns));
    }
    break;
  }
  return bad(value, "is no time of at most 60s; write it with its unit, us, ms or s, such as 200us");
}

std::string in_capitals(std::string_view text) {
  std::string capitals(text);
  std::transform(capitals.begin(), capitals.end(), capitals.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return capitals;
}

std::optional<WcStatus> status_named(std::string_view text) {
  std::string name = in_capitals(text);
  constexpr std::string_view kPrefix = "IBV_WC_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  for (const queue::WcStatusName& known : queue::kErrorStatusNames) {
    if (name == known.word || name == in_capitals(known.text)) return known.status;
  }
  return std::nullopt;
}

std::string known_statuses() {
  std::string words;
  for (const queue::WcStatusName& known : queue::kErrorStatusNames)
    words.append(words.empty() ? "" : ", ").append(known.word);
  return words;
}

Result<FailAt> fail_at(std::string_view value) {
  const std::size_t colon = value.find(':');
  const auto count = number<std::uint64_t>(value.substr(0, colon));
  if (colon == std::string_view::npos || !count || *count == 0) {
    return bad(value,
               "is not N:STATUS, the number of a send work request from 1 on and how it ends, such as "
               "3:RETRY_EXC_ERR");
  }
  const std::string_view name = value.substr(colon + 1);
  if (const auto status = status_named(name)) return FailAt{*count, *status};
  return bad(name, "is no status that a send can fail with; known are " + known_statuses());
}

Result<void> add_failures(std::string_view value, std::vector<FailAt>& failures) {
  for (std::size_t start = 0; start <= value.size();) {
    const std::size_t comma = std::min(value.find(',', start), value.size());
    auto one = fail_at(value.substr(start, comma - start));
    if (!one) return one.error();
    failures.push_back(*one);
    start = comma + 1;
  }
  return {};
}

Result<std::uint64_t> count(std::string_view value, const char* what) {
  if (const auto amount = number<std::uint64_t>(value)) return *amount;
  return bad(value, what);
}

template <typename T, typename U>
Result<void> assign(const Result<T>& read, U& target) {
  if (!read) return read.error();
  target = *read;
  return {};
}

}  // namespace

bool FaultOptions::has_link_faults() const {
  return has_chance() || link.latency.count() > 0;
}

bool FaultOptions::has_chance() const {
  return link.loss > 0 || link.duplicate > 0 || link.reorder > 0 || link.corrupt > 0;
}

Result<void> set_fault_option(std::string_view name, std::string_view value, FaultOptions& options) {
  LinkConfig& link = options.link;
  if (name == "loss") return assign(probability(value), link.loss);
  if (name == "duplicate") return assign(probability(value), link.duplicate);
  if (name == "reorder") return assign(probability(value), link.reorder);
  if (name == "corrupt") return assign(probability(value), link.corrupt);
  if (name == "delay") return assign(delay(value), link.latency);
  if (name == "rnr") return assign(count(value, "is no number of messages, such as 3"), options.rnr);
  if (name == "fail") return add_failures(value, options.failures);
  if (name != "seed") return queue::error(EINVAL, std::string(name) + " is no fault");
  options.has_seed = true;
  return assign(count(value, "is no seed: a number from 0 to 18446744073709551615"), link.seed);
}

}  // namespace nicless::wire

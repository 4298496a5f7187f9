// SPDX-License-Identifier: MIT
#include "cm/host_search.h"

#include <algorithm>

#include "cm/take_front.h"

namespace nicless::cm {

bool HostSearch::is_known(Instant now, const Way& way) const {
  const auto known = known_until_.find(way);
  return known != known_until_.end() && now < known->second;
}

void HostSearch::wait_for(Instant now, const Way& way, CmId* id, Instant deadline) {
  const auto [place, is_new] = searches_.try_emplace(way);
  place->second.waiting.push_back(id);
  if (is_new) looks_.set(way, now + kFirstLook);
  ways_[id] = way;
  deadlines_.set(id, deadline);
}

void HostSearch::forget(CmId* id) {
  std::erase_if(outcomes_, [&](const Outcome& outcome) { return outcome.id == id; });
  const auto place = ways_.find(id);
  if (place == ways_.end()) return;
  const Way way = place->second;
  ways_.erase(place);
  deadlines_.erase(id);
  std::erase(searches_.at(way).waiting, id);
  if (searches_.at(way).waiting.empty()) end(way);
}

void HostSearch::end(const Way& way) {
  looks_.erase(way);
  searches_.erase(way);
}

void HostSearch::on_sight(Instant now, const Way& way, Sight sight) {
  const auto place = searches_.find(way);
  if (place != searches_.end()) {
    Search& search = place->second;
    const bool is_late = search.interval == kLongestLook;
    const bool is_found = sight == Sight::Found && (!is_late || search.is_in_doubt);
    search.is_in_doubt = sight == Sight::Found;
    if (!is_found) {
      search.interval = std::min(2 * search.interval, kLongestLook);
      looks_.set(way, now + search.interval);
      return;
    }
  } else if (sight != Sight::Found) {
    return;
  }
  if (known_until_.size() >= kKnownMax) known_until_.clear();  // they are found again for the asking
  known_until_[way] = now + kKnownFor;
  if (place == searches_.end()) return;
  for (CmId* id : place->second.waiting) {
    ways_.erase(id);
    deadlines_.erase(id);
    outcomes_.push_back({id, true});
  }
  end(way);
}

void HostSearch::on_deadline(Instant now) {
  while (const auto id = deadlines_.due(now)) {
    forget(*id);
    outcomes_.push_back({*id, false});
  }
}

std::optional<HostSearch::Outcome> HostSearch::next_outcome() {
  return take_front(outcomes_);
}

std::optional<Instant> HostSearch::next_deadline() const {
  return queue::earliest(looks_.next(), deadlines_.next());
}

}  // namespace nicless::cm

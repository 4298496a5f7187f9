// SPDX-License-Identifier: MIT
#include "wire/rc/replay.h"

#include <algorithm>

namespace nicless::wire {

void Replay::start(std::uint32_t depth) {
  entries_.assign(std::max(depth, 1u), Read{});
  next_ = 0;
}

void Replay::resize(std::uint32_t depth) {
  const std::size_t wanted = std::max(depth, 1u);
  std::rotate(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(next_), entries_.end());  // oldest first
  const std::size_t kept = std::min(wanted, entries_.size());
  entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kept));
  entries_.insert(entries_.begin(), wanted - kept, Read{});
  next_ = 0;
}

void Replay::add(const Read& read) {
  add_entry(read);
}

void Replay::add(const Atomic& atomic) {
  add_entry(atomic);
}

void Replay::add_entry(const Entry& entry) {
  entries_[next_] = entry;
  next_ = (next_ + 1) % entries_.size();
}

const Replay::Read* Replay::find(std::uint64_t psn, const Reth& reth, std::uint32_t mtu_bytes) const {
  for (const Entry& entry : entries_) {
    const Read* read = std::get_if<Read>(&entry);
    if (read == nullptr || psn < read->first_psn || psn >= read->first_psn + read->packets) continue;
    const std::uint64_t skipped = (psn - read->first_psn) * mtu_bytes;
    const bool is_part = reth.rkey == read->reth.rkey && reth.address == read->reth.address + skipped &&
                         reth.length <= read->reth.length - skipped;
    if (is_part) return read;
  }
  return nullptr;
}

const Replay::Atomic* Replay::find(std::uint64_t psn, const AtomicEth& request) const {
  for (const Entry& entry : entries_) {
    const Atomic* atomic = std::get_if<Atomic>(&entry);
    if (atomic != nullptr && atomic->psn == psn && atomic->request == request) return atomic;
  }
  return nullptr;
}

}  // namespace nicless::wire

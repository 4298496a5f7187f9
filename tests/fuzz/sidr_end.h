// SPDX-License-Identifier: MIT
// The datagram services of one host for the fuzzer of management datagrams: resolutions that programs ask for, and
// requests that they answer. A question ends once.
#pragma once

#include <deque>
#include <set>

#include "cm/messages.h"
#include "cm/resolutions.h"
#include "tests/fuzz/input.h"

namespace nicless::fuzz {

class SidrEnd {
 public:
  void ask(queue::Instant now, std::uint32_t id, std::uint64_t tid, const cm::MadPath& path) {
    wire::CmSidrReq request =
        cm::build_sidr_request(wire::PortSpace::Udp, {path.local, path.remote.port}, path.remote, {});
    request.request_id = id;
    open_.insert(id);
    resolutions_.ask(now, tid, request, path, reinterpret_cast<cm::CmId*>(std::uintptr_t{id}));
    hear();
  }
  bool knows(std::uint32_t id) { return resolutions_.knows(id); }

  // The program answers its oldest request.
  void answer(queue::Instant now, bool refuses) {
    if (waiting_.empty()) return;
    const auto reply = refuses ? cm::build_sidr_refusal({}) : cm::build_sidr_reply(queue::Qpn(0x99), 0x1234567, {});
    require(resolutions_.answer(now, waiting_.front(), reply).has_value(), "an answer was refused");
    waiting_.pop_front();
  }

  // False: it is none of these, or nobody's.
  bool on_message(queue::Instant now, const cm::MadPath& path, const wire::CmMessage& message) {
    const bool is_known = resolutions_.on_message(now, path, message);
    hear();
    if (is_known) return true;
    const auto* request = std::get_if<wire::CmSidrReq>(&message.body);
    if (request == nullptr || !request->cma()) return false;
    if (waiting_.size() < kBacklog)
      waiting_.push_back(resolutions_.take(message, path, reinterpret_cast<cm::CmId*>(this)));
    return true;
  }

  void on_unreachable(queue::Instant now, const wire::Endpoint& remote) {
    resolutions_.on_unreachable(now, remote);
    hear();
  }
  void on_deadline(queue::Instant now) {
    resolutions_.on_deadline(now);
    hear();
  }
  std::optional<queue::Instant> next_deadline() const { return resolutions_.next_deadline(); }
  std::optional<cm::OutgoingMad> next_message() { return resolutions_.next_message(); }

  // The programs leave: requests are refused, and questions need no answer any more.
  void leave(queue::Instant now) {
    while (!waiting_.empty()) answer(now, true);
    for (const auto id : open_) resolutions_.withdraw(id);
    open_.clear();
  }

 private:
  static constexpr std::size_t kBacklog = 8;

  void hear() {
    while (const auto told = resolutions_.next_event()) {
      const auto id = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(told->owner));
      require(open_.erase(id) == 1, "a question ends twice");
    }
  }

  cm::Resolutions resolutions_;
  std::deque<cm::Resolutions::AnswerKey> waiting_;  // for the program
  std::set<std::uint32_t> open_;
};

}  // namespace nicless::fuzz

// SPDX-License-Identifier: MIT
// A request that is sent until it is answered: seldom while nothing comes back, and after "nobody is there" a few times
// in quick succession, because servers close their listeners and open them again (timeouts.h). Virtual time, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cm/timeouts.h"

namespace nicless::cm {

class Question {
 public:
  enum class Verdict : std::uint8_t {
    Wait,         // not yet
    Ask,          // send it again
    NobodyThere,  // it was refused, and nobody has come since
    NoAnswer,     // it was sent as often as it may be
  };

  // It has just been sent; it may be sent `retries` times more, `longest` apart at most.
  Question(Instant now, std::uint8_t retries, Duration longest);

  // Nobody is there, says the peer's host or the peer.
  void on_refused(Instant now);
  // Somebody is, and asks for patience.
  void wait_until(Instant deadline);
  Verdict on_deadline(Instant now);
  Instant deadline() const { return resend_.deadline; }

 private:
  Verdict ask_again(Instant now);

  Resend resend_;
  std::uint8_t retries_;
  Duration longest_;
  bool is_refused_ = false;
  std::size_t asked_again_ = 0;  // since then
};

}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
#include "cm/question.h"

namespace nicless::cm {

Question::Question(Instant now, std::uint8_t retries, Duration longest)
    : resend_(Resend::start(now, retries)), retries_(retries), longest_(longest) {}

void Question::on_refused(Instant now) {
  if (is_refused_) return;  // one refusal for each time it is asked; the first counts
  is_refused_ = true;
  asked_again_ = 0;
  resend_.deadline = now + kAskAgainAfter[0];
}

void Question::wait_until(Instant deadline) {
  is_refused_ = false;
  resend_.deadline = deadline;
}

Question::Verdict Question::on_deadline(Instant now) {
  if (now < resend_.deadline) return Verdict::Wait;
  if (is_refused_) return ask_again(now);
  if (resend_.left == 0) return Verdict::NoAnswer;
  resend_.again(now, longest_, retries_);
  return Verdict::Ask;
}

// Nobody was there a moment ago. True for good if nobody has answered by the time the last question was due an answer.
Question::Verdict Question::ask_again(Instant now) {
  if (asked_again_ == kAskAgainAfter.size()) return Verdict::NobodyThere;
  ++asked_again_;
  const bool is_last = asked_again_ == kAskAgainAfter.size();
  resend_.deadline = now + (is_last ? kLastAnswerWithin : kAskAgainAfter[asked_again_]);
  return Verdict::Ask;
}

}  // namespace nicless::cm

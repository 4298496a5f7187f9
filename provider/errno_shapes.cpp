// SPDX-License-Identifier: MIT
#include "provider/errno_shapes.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "provider/log.h"

namespace nicless::provider {
namespace {

constexpr int kSentenceBytesMax = 512;

void say(const Call& call, const queue::Error& error) {
  char subject[32] = "";
  if (call.qpn) std::snprintf(subject, sizeof subject, " qp 0x%x", *call.qpn);
  const char* name = strerrorname_np(error.errno_value);
  char sentence[kSentenceBytesMax];
  std::snprintf(sentence, sizeof sentence, "%s%s: %s, %s", call.name, subject, name != nullptr ? name : "?",
                error.why.empty() ? strerrordesc_np(error.errno_value) : error.why.c_str());
  try {
    log(NICLESS_LOG_WARN, sentence);
  } catch (const std::bad_alloc&) {
    // The errno value tells of it; there is no room for words.
  }
}

}  // namespace

// Also for calls that return the errno value: with rdma-core, where a system call fails underneath, errno is that
// value, and programs print it (perftest does).
int report(const Call& call, const queue::Error& error) noexcept {
  const int number = error.errno_value;
  const bool is_failure = number != EAGAIN && number != EINTR && number != ENODATA;
  if (is_failure && is_logged(NICLESS_LOG_WARN)) say(call, error);
  return errno = number;
}

}  // namespace nicless::provider

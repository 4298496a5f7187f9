// SPDX-License-Identifier: MIT
#include "provider/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <new>
#include <string_view>
#include <unordered_set>

#include "queue/mutex.h"

namespace nicless::provider {
namespace {

constexpr std::size_t kSentencesMax = 1000;  // remembered; then a last sentence says that no more come

struct Log {
  queue::Mutex mutex;
  std::unordered_set<std::string> said GUARDED_BY(mutex);
};

// Never destroyed: threads of ours speak until the process is gone.
alignas(Log) std::array<std::byte, sizeof(Log)> storage;
Log& the_log() {
  static Log& made = *new (storage.data()) Log;
  return made;
}

// One write a line, so that lines of several threads and processes do not mix. Where it fails nobody listens.
void write_line(const std::string& sentence) {
  const std::string line = "nicless: " + sentence + "\n";
  syscall(SYS_write, STDERR_FILENO, line.data(), line.size());
}

int level_from_environment() {
  static constexpr std::array<std::string_view, 5> kNames{"none", "error", "warn", "info", "debug"};
  const char* const wanted = std::getenv("NICLESS_LOG");
  if (wanted == nullptr) return NICLESS_LOG_ERROR;
  for (std::size_t level = 0; level < kNames.size(); ++level) {
    if (kNames[level] == wanted) return static_cast<int>(level);
  }
  if (*wanted == '\0') return NICLESS_LOG_ERROR;
  write_line(std::string("NICLESS_LOG=") + wanted + " is no level: none, error, warn, info or debug; warn is taken");
  return NICLESS_LOG_WARN;
}

}  // namespace

bool is_logged(nicless_log_level level) {
  static const int wanted = level_from_environment();
  return static_cast<int>(level) <= wanted;
}

// A level that is none is told when a program begins with verbs, though it may have nothing else to hear.
void check_log_level() {
  static_cast<void>(is_logged(NICLESS_LOG_ERROR));
}

void log(nicless_log_level level, const std::string& sentence) {
  if (!is_logged(level)) return;
  const int saved = errno;
  Log& log = the_log();
  {
    queue::MutexLock lock(log.mutex);
    if (log.said.size() <= kSentencesMax && log.said.insert(sentence).second) {
      write_line(log.said.size() <= kSentencesMax ? sentence : "there is more to say than fits here");
    }
  }
  errno = saved;
}

// The set may be half changed: a new one is made over it, and the old one's memory is given up.
void reset_log_after_fork() {
  new (&the_log()) Log;
}

}  // namespace nicless::provider

extern "C" void nicless_log(nicless_log_level level, const char* sentence) {
  nicless::provider::log(level, sentence);
}

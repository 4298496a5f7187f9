// SPDX-License-Identifier: MIT
#include "provider/hw_counters.h"

#include <array>
#include <new>
#include <string_view>

#include "provider/process.h"
#include "provider/runtime.h"
#include "queue/mutex.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::provider {
namespace {

using wire::raw::call;

constexpr std::string_view kFolder = "/hw_counters/";
constexpr std::size_t kNamesMax = std::size(wire::kEngineCounterNames) + std::size(wire::kQpCounterNames);

// A file in memory for each counter that was ever asked for.
struct Files {
  queue::Mutex mutex;
  std::array<int, kNamesMax> fds GUARDED_BY(mutex);
  Files() { fds.fill(-1); }
};
alignas(Files) std::array<std::byte, sizeof(Files)> storage;
Files& the_files() {
  static Files& made = *new (storage.data()) Files;
  return made;
}

// The parent's files are the parent's: what the child counts is not written there.
void on_child_fork() NO_THREAD_SAFETY_ANALYSIS {
  for (const int fd : the_files().fds) {
    if (fd >= 0) wire::raw::close(fd);
  }
  new (&the_files()) Files;
}

bool write_count(int fd, std::uint64_t count) {
  const std::string text = std::to_string(count) + "\n";
  return call(SYS_ftruncate, fd, 0L) == 0 &&
         call(SYS_pwrite64, fd, text.data(), text.size(), 0L) == static_cast<long>(text.size());
}

std::string write_file(std::size_t index, const NamedCount& counter) {
  watch_forks(on_child_fork);
  Files& files = the_files();
  queue::MutexLock lock(files.mutex);
  int& fd = files.fds[index];
  if (fd < 0) fd = static_cast<int>(call(SYS_memfd_create, counter.name, 1u));  // MFD_CLOEXEC
  if (fd < 0 || !write_count(fd, counter.count)) return {};
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

void describe_counters(const std::string& folder, std::vector<TreeFile>& files) {
  for (const NamedCount& counter : named({})) files.push_back({folder + "hw_counters/" + counter.name, "0\n"});
}

std::string counter_file(const std::string& path) {
  const std::size_t at = path.rfind(kFolder);
  if (at == std::string::npos) return {};
  Runtime* const runtime = Runtime::find();
  if (runtime == nullptr) return {};
  const std::string_view name = std::string_view(path).substr(at + kFolder.size());
  const auto counters = named(runtime->counters());
  for (std::size_t i = 0; i < counters.size(); ++i) {
    if (counters[i].name == name) return write_file(i, counters[i]);
  }
  return {};
}

}  // namespace nicless::provider

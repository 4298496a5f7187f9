// SPDX-License-Identifier: MIT
#include "queue/guarded_copy.h"

#include <setjmp.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "queue/check.h"

namespace nicless::queue {
namespace {

struct Guard {
  std::uintptr_t start;
  std::size_t size;
  sigjmp_buf resume;

  // A fault at an address that no pointer can have comes without the address.
  bool covers(const siginfo_t& info) const {
    return info.si_code == SI_KERNEL || reinterpret_cast<std::uintptr_t>(info.si_addr) - start < size;
  }
};

// Of this thread. The model keeps the handler, which sees every fault of the program, from allocating it.
[[gnu::tls_model("initial-exec")]] thread_local Guard* active_guard = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local bool has_unblocked = false;

constexpr std::array kFaults{SIGSEGV, SIGBUS};

// Whom a signal belonged to when one of our handlers was put before it. A program that installs a handler after us and
// passes on to ours gets another of ours before it when it registers memory again, so that nothing goes in a circle.
struct Previous {
  struct sigaction action {};
  bool is_used = false;
};
constexpr std::size_t kHandlersMax = 4;
std::array<std::array<Previous, kHandlersMax>, kFaults.size()> previous_ones;  // written before the handler can run

// A fault happens again when the handler returns; what another process or thread has sent does not.
void die_by(int signal, const siginfo_t& info) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
  if (info.si_code <= 0) raise(signal);
}

void call(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  sigset_t blocked = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, signal);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);  // until the signal's frame is left
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  action.sa_handler(signal);
}

bool is_function(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// As the kernel would have delivered it to the handler that was here before.
void pass_on(struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  const struct sigaction action = previous;
  if (is_function(action)) {
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) previous = {};
    return call(action, signal, info, context);
  }
  const bool is_sent = info->si_code <= 0;
  if (is_sent && action.sa_handler == SIG_IGN) return;
  die_by(signal, *info);
}

template <std::size_t kHandler>
void on_fault(int signal, siginfo_t* info, void* context) {
  Guard* const guard = active_guard;
  if (guard != nullptr && info->si_code > 0 && guard->covers(*info)) {
    active_guard = nullptr;
    siglongjmp(guard->resume, 1);
  }
  pass_on(previous_ones[signal == kFaults[0] ? 0 : 1][kHandler].action, signal, info, context);
}

using Handler = void (*)(int, siginfo_t*, void*);
constexpr std::array<Handler, kHandlersMax> kHandlers{on_fault<0>, on_fault<1>, on_fault<2>, on_fault<3>};

bool is_same(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_flags == b.sa_flags && a.sa_handler == b.sa_handler;
}

// The stack and the restarting of calls stay as they were. The handler is left by a jump, so the signal stays
// unblocked.
void put_before(const struct sigaction& current, int signal, Handler handler) {
  constexpr int kKept = SA_ONSTACK | SA_RESTART;
  struct sigaction ours {};
  ours.sa_sigaction = handler;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | (is_function(current) ? current.sa_flags & kKept : SA_ONSTACK);
  sigaction(signal, &ours, nullptr);
}

void arm(int signal, std::array<Previous, kHandlersMax>& previous) {
  struct sigaction current {};
  sigaction(signal, nullptr, &current);
  const bool is_ours = (current.sa_flags & SA_SIGINFO) != 0 &&
                       std::find(kHandlers.begin(), kHandlers.end(), current.sa_sigaction) != kHandlers.end();
  if (is_ours) return;
  for (std::size_t i = 0; i < kHandlersMax; ++i) {
    if (previous[i].is_used && !is_same(previous[i].action, current)) continue;
    previous[i] = {current, true};
    return put_before(current, signal, kHandlers[i]);
  }
}

// A fault whose signal is blocked kills the process, and threads that block all signals are common. Once a thread is
// enough: nobody waits for these two.
void unblock_faults() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int signal : kFaults) sigaddset(&faults, signal);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
  has_unblocked = true;
}

template <typename Word>
void store_word(std::byte* to, const std::byte* from) {
  using Aliased [[gnu::may_alias]] = Word;
  Word value;
  std::memcpy(&value, from, sizeof(value));
  __atomic_store_n(reinterpret_cast<Aliased*>(to), value, __ATOMIC_RELEASE);
}

void copy_last_word_last(std::byte* to, std::span<const std::byte> bytes) {
  const std::size_t length = bytes.size();
  const auto end = reinterpret_cast<std::uintptr_t>(to) + length;
  std::size_t word = 8;
  while (word > 1 && (word > length || end % word != 0)) word /= 2;
  const std::size_t before = length - word;
  std::memcpy(to, bytes.data(), before);
  switch (word) {
    case 8:
      return store_word<std::uint64_t>(to + before, bytes.data() + before);
    case 4:
      return store_word<std::uint32_t>(to + before, bytes.data() + before);
    case 2:
      return store_word<std::uint16_t>(to + before, bytes.data() + before);
    default:
      return store_word<std::uint8_t>(to + before, bytes.data() + before);
  }
}

// Not a race or a freed block to the sanitizers: the program may do with its memory what it likes.
__attribute__((no_sanitize("address", "thread"))) void touch(const volatile std::byte* start, std::size_t size) {
  constexpr std::size_t kSmallestPage = 4096;
  for (std::size_t i = 0; i < size; i += kSmallestPage) static_cast<void>(start[i]);
  static_cast<void>(start[size - 1]);
}

}  // namespace

void arm_memory_guard() {
  static std::atomic_flag is_being_armed;  // by another thread; no lock, which a forked child could find locked
  if (is_being_armed.test_and_set()) return;
  for (std::size_t i = 0; i < kFaults.size(); ++i) arm(kFaults[i], previous_ones[i]);
  is_being_armed.clear();
}

[[gnu::noinline]] bool run_guarded(std::span<const std::byte> memory, void (*access)(void*), void* argument) {
  NICLESS_DCHECK(active_guard == nullptr);
  if (!has_unblocked) unblock_faults();
  Guard guard;
  guard.start = reinterpret_cast<std::uintptr_t>(memory.data());
  guard.size = memory.size();
  if (sigsetjmp(guard.resume, 0) != 0) return false;
  active_guard = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  active_guard = nullptr;
  return true;
}

bool copy_to(std::byte* to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  return guarded({to, bytes.size()}, [=] { copy_last_word_last(to, bytes); });
}

bool copy_from(std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) return true;
  return guarded(from, [=] { std::memcpy(to, from.data(), from.size()); });
}

bool is_readable(std::span<const std::byte> memory) {
  if (memory.empty()) return true;
  return guarded(memory, [=] { touch(memory.data(), memory.size()); });
}

}  // namespace nicless::queue

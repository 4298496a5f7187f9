// SPDX-License-Identifier: MIT
// Goal: a copy to or from memory that is not there says so, and no other fault of a program changes its course.
// Method: pages from mmap, taken away. What concerns the process's signals runs in a child each, where nothing has been
// armed before.
#include "queue/guarded_copy.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace nicless::queue {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kDone = 42;

class Pages {
 public:
  explicit Pages(std::size_t count, int fd = -1)
      : bytes_(count * kPage),
        start_(
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0)) {
    REQUIRE(start_ != MAP_FAILED);
  }
  ~Pages() { ::munmap(start_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(start_) + offset; }
  void unmap(std::size_t page) { ::munmap(at(page * kPage), kPage); }
  void protect(std::size_t page, int protection) { ::mprotect(at(page * kPage), kPage, protection); }

 private:
  std::size_t bytes_;
  void* start_;
};

// The wait status of a child that ran `body`; its exit code is what body returned.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGBUS}) ::signal(number, SIG_DFL);  // not the test framework's
    ::_exit(body());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

bool is_done(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kDone;
}

int done_if(bool condition) {
  return condition ? kDone : 1;
}

std::vector<std::byte> message(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// What a program's handler was told; it mends the fault, or ends the child.
Pages* mended = nullptr;
void* volatile told_address = nullptr;
void mend(int, siginfo_t* info, void*) {
  told_address = info->si_addr;
  mended->protect(0, PROT_READ | PROT_WRITE);
}
void end_child(int) {
  ::_exit(kDone);
}

void install(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(number, &action, nullptr);
}

void write_byte(std::byte* to) {
  *static_cast<volatile std::byte*>(to) = std::byte{1};
}

}  // namespace

TEST_CASE("what is there is copied, whatever its length and place", "[queue][guarded]") {
  arm_memory_guard();
  std::array<std::byte, 64> to{};
  std::array<std::byte, 64> back{};
  for (std::size_t offset = 0; offset < 9; ++offset) {
    for (std::size_t size = 0; size < 40; ++size) {
      const auto bytes = message(size);
      to.fill(std::byte{0xa5});
      auto expected = to;
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      REQUIRE(copy_to(to.data() + offset, bytes));
      REQUIRE(to == expected);
      REQUIRE(copy_from({to.data() + offset, size}, back.data()));
      REQUIRE(std::equal(bytes.begin(), bytes.end(), back.begin()));
      REQUIRE(is_readable({to.data() + offset, size}));
    }
  }
}

TEST_CASE("memory that was taken away is neither read nor written, and what stands before it is", "[queue][guarded]") {
  arm_memory_guard();
  Pages pages(3);
  const int how = GENERATE(0, 1);
  if (how == 0) pages.unmap(1);
  if (how == 1) pages.protect(1, PROT_NONE);
  const auto bytes = message(200);
  std::vector<std::byte> back(2 * kPage);
  CHECK_FALSE(copy_to(pages.at(kPage - 100), bytes));
  CHECK_FALSE(copy_to(pages.at(kPage), bytes));
  CHECK_FALSE(copy_from({pages.at(kPage - 100), 200}, back.data()));
  CHECK_FALSE(is_readable({pages.at(kPage - 1), 2}));
  CHECK_FALSE(is_readable({pages.at(100), 2 * kPage}));
  CHECK(copy_to(pages.at(kPage - 200), bytes));
  CHECK(copy_to(pages.at(2 * kPage), bytes));
  CHECK(is_readable({pages.at(0), kPage}));
}

TEST_CASE("memory that was made read-only is read and not written", "[queue][guarded]") {
  arm_memory_guard();
  Pages pages(1);
  pages.protect(0, PROT_READ);
  std::byte byte{1};
  CHECK_FALSE(copy_to(pages.at(5), {&byte, 1}));
  CHECK(copy_from({pages.at(5), 1}, &byte));
  CHECK(byte == std::byte{0});
}

TEST_CASE("a mapped file that was cut is memory taken away", "[queue][guarded]") {
  arm_memory_guard();
  const int fd = ::memfd_create("cut", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::ftruncate(fd, 2 * kPage) == 0);
  const Pages pages(2, fd);
  const auto bytes = message(100);
  REQUIRE(copy_to(pages.at(kPage), bytes));
  REQUIRE(::ftruncate(fd, kPage) == 0);
  CHECK_FALSE(copy_to(pages.at(kPage), bytes));  // SIGBUS
  CHECK_FALSE(is_readable({pages.at(kPage), 1}));
  CHECK(copy_to(pages.at(0), bytes));
  ::close(fd);
}

TEST_CASE("an address that no pointer can have is no memory", "[queue][guarded]") {
  arm_memory_guard();
  auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{0x8000'0000'0000'0000});
  std::byte byte{};
  CHECK_FALSE(copy_to(nowhere, {&byte, 1}));
  CHECK_FALSE(copy_from({nowhere, 1}, &byte));
}

TEST_CASE("a thread that blocks all signals is guarded, too", "[queue][guarded]") {
  arm_memory_guard();
  Pages pages(1);
  pages.protect(0, PROT_NONE);  // not unmapped: the thread needs a stack, which would take its place
  bool is_there = true;
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    is_there = is_readable({pages.at(0), 1});
  }).join();
  CHECK_FALSE(is_there);
}

TEST_CASE("a program's own fault kills it, as before", "[queue][guarded]") {
  const int status = in_child([] {
    arm_memory_guard();
    Pages pages(1);
    pages.unmap(0);
    static_cast<void>(is_readable({pages.at(0), 1}));  // ours, survived
    write_byte(pages.at(0));
    return kDone;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
}

TEST_CASE("a signal that somebody sends kills, or is ignored, as before", "[queue][guarded]") {
  const int number = GENERATE(SIGSEGV, SIGBUS);
  const int killed = in_child([number] {
    arm_memory_guard();
    ::kill(::getpid(), number);
    return kDone;
  });
  CHECK(WIFSIGNALED(killed));
  CHECK(WTERMSIG(killed) == number);
  CHECK(is_done(in_child([number] {
    ::signal(number, SIG_IGN);
    arm_memory_guard();
    ::kill(::getpid(), number);
    return kDone;
  })));
}

TEST_CASE("a program's handler gets its faults with the address, and may go on", "[queue][guarded]") {
  CHECK(is_done(in_child([] {
    Pages pages(2);
    install(SIGSEGV, mend);
    arm_memory_guard();
    mended = &pages;
    pages.protect(0, PROT_NONE);
    pages.unmap(1);
    if (is_readable({pages.at(kPage), 1})) return 2;
    if (told_address != nullptr) return 3;  // was ours, not the program's
    write_byte(pages.at(17));
    return done_if(told_address == pages.at(17));
  })));
}

TEST_CASE("a handler that asked to be called once is called once", "[queue][guarded]") {
  const int status = in_child([] {
    Pages pages(1);
    struct sigaction action {};
    action.sa_sigaction = mend;
    action.sa_flags = static_cast<int>(SA_SIGINFO | SA_RESETHAND);
    ::sigaction(SIGSEGV, &action, nullptr);
    arm_memory_guard();
    mended = &pages;
    pages.protect(0, PROT_NONE);
    write_byte(pages.at(0));
    pages.protect(0, PROT_NONE);
    write_byte(pages.at(0));
    return kDone;
  });
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("a handler of the old kind is called as well", "[queue][guarded]") {
  CHECK(is_done(in_child([] {
    ::signal(SIGSEGV, end_child);
    arm_memory_guard();
    Pages pages(1);
    pages.unmap(0);
    write_byte(pages.at(0));
    return 2;
  })));
}

namespace {

struct sigaction before_program {};
void pass_back(int number, siginfo_t* info, void* context) {
  told_address = info->si_addr;
  before_program.sa_sigaction(number, info, context);
}

}  // namespace

TEST_CASE("a handler installed later and passing on to ours is no circle once memory is registered again",
          "[queue][guarded]") {
  CHECK(is_done(in_child([] {
    ::signal(SIGSEGV, end_child);
    arm_memory_guard();
    struct sigaction later {};
    later.sa_sigaction = pass_back;
    later.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &later, &before_program);
    Pages pages(1);
    pages.unmap(0);
    arm_memory_guard();
    if (is_readable({pages.at(0), 1}) || told_address != nullptr) return 2;
    write_byte(pages.at(0));  // ours, then the later handler, then ours, then the first
    return 3;
  })));
}

TEST_CASE("a handler's own fault on the way is not taken for ours", "[queue][guarded]") {
  const int status = in_child([] {
    Pages pages(1);
    arm_memory_guard();
    pages.unmap(0);
    std::byte byte{};
    return done_if(guarded({&byte, 1}, [&] { write_byte(pages.at(0)); }));
  });
  CHECK(WIFSIGNALED(status));
}

}  // namespace nicless::queue

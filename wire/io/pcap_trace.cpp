// SPDX-License-Identifier: MIT
#include "wire/io/pcap_trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include <cstring>
#include <span>

#include "wire/io/clock.h"
#include "wire/io/raw_syscalls.h"
#include "wire/packet/pcapng.h"

namespace nicless::wire {
namespace {

constexpr int kOpenFlags = O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC;

int open_file(const std::string& path, int more_flags) {
  return static_cast<int>(raw::call(SYS_openat, AT_FDCWD, path.c_str(), kOpenFlags | more_flags, 0644));
}

// 0 or -errno.
int write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const long written = raw::call(SYS_write, fd, bytes.data(), bytes.size());
    if (written == -EINTR) continue;
    if (written < 0) return static_cast<int>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

// Writes `start` if the file is empty and nobody else has it, and so claims it; whether it did, or -errno. The lock
// lasts as long as the descriptor: by it, another run sees that the file is being written.
int claim(int fd, std::span<const std::byte> start) {
  if (raw::call(SYS_flock, fd, LOCK_EX | LOCK_NB) < 0) return 0;
  struct stat status {};
  if (fstat(fd, &status) != 0 || status.st_size != 0) return 0;
  const int written = write_all(fd, start);
  return written < 0 ? written : 1;
}

queue::Duration offset_to_unix() {
  timespec utc{};
  clock_gettime(CLOCK_REALTIME, &utc);
  return std::chrono::seconds(utc.tv_sec) + std::chrono::nanoseconds(utc.tv_nsec) - now().time_since_epoch();
}

queue::Error failed(int negative_errno, const std::string& path) {
  return queue::error(-negative_errno, "the trace " + path + " cannot be written: " + std::strerror(-negative_errno));
}

}  // namespace

queue::Result<std::unique_ptr<PcapTrace>> PcapTrace::open(const std::string& path, Tell tell) {
  std::vector<std::byte> start;
  append_pcapng_start(start);
  int fd = open_file(path, 0);
  if (fd < 0) return failed(fd, path);
  const int claimed = claim(fd, start);
  if (claimed == 1) return std::make_unique<PcapTrace>(fd, path, tell, std::vector<std::byte>());
  raw::close(fd);
  if (claimed < 0) return failed(claimed, path);
  const std::string own_path = with_process_number(path, static_cast<int>(raw::call(SYS_getpid)));
  fd = open_file(own_path, O_TRUNC);
  if (fd < 0) return failed(fd, own_path);
  return std::make_unique<PcapTrace>(fd, own_path, tell, std::move(start));
}

PcapTrace::PcapTrace(int fd, std::string path, Tell tell, std::vector<std::byte> unwritten)
    : path_(std::move(path)), tell_(tell), unix_offset_(offset_to_unix()), fd_(fd), unwritten_(std::move(unwritten)) {}

PcapTrace::~PcapTrace() {
  if (fd_ >= 0) raw::close(fd_);
}

void PcapTrace::on_sent(queue::Instant now, const OutDatagram& sealed) {
  const std::vector<std::byte> bytes = to_bytes(sealed);
  queue::MutexLock lock(mutex_);
  append_pcapng({unix_time_ns(now), true, sealed.from, sealed.to, sealed.ip, bytes}, unwritten_);
}

void PcapTrace::on_received(queue::Instant now, const InDatagram& datagram) {
  queue::MutexLock lock(mutex_);
  append_pcapng({unix_time_ns(now), false, datagram.from, datagram.to, {}, datagram.bytes}, unwritten_);
}

void PcapTrace::on_turn_end() {
  queue::MutexLock lock(mutex_);
  const int written = fd_ < 0 ? 0 : write_all(fd_, unwritten_);
  unwritten_.clear();
  if (written == 0) return;
  raw::close(fd_);
  fd_ = -1;
  tell_("the trace " + path_ + " ends here: " + std::strerror(-written));
}

std::uint64_t PcapTrace::unix_time_ns(queue::Instant now) const {
  return static_cast<std::uint64_t>((now.time_since_epoch() + unix_offset_).count());
}

std::string with_process_number(const std::string& path, int number) {
  const std::size_t name = path.find_last_of('/') + 1;  // 0 where there is no folder
  const std::size_t dot = path.find_last_of('.');
  const std::size_t at = dot == std::string::npos || dot <= name ? path.size() : dot;
  return path.substr(0, at) + "." + std::to_string(number) + path.substr(at);
}

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
// A trace of all ports into a pcapng file. What a turn sent and received is in the file when the turn ends, so a
// process that is killed leaves a file that can be read. Thread-safe; its lock is a leaf.
//
// One file a process: several that inherit the same name must not write into each other's. The first claims the name
// by finding the file empty or missing; another process, or a forked child, puts its number before the suffix
// ("out.pcapng", then "out.4711.pcapng"). So nothing is ever overwritten: `nicless run --pcap FILE` empties FILE first.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "queue/mutex.h"
#include "queue/result.h"
#include "wire/io/trace.h"

namespace nicless::wire {

class PcapTrace final : public Trace {
 public:
  // Hears the sentence when the file cannot be written any further; on the thread whose turn ends, with its port's
  // lock.
  using Tell = void (*)(const std::string& sentence);
  // The error is open(2)'s or write(2)'s.
  static queue::Result<std::unique_ptr<PcapTrace>> open(const std::string& path, Tell tell);
  PcapTrace(int fd, std::string path, Tell tell, std::vector<std::byte> unwritten);
  ~PcapTrace() override;
  PcapTrace(const PcapTrace&) = delete;
  PcapTrace& operator=(const PcapTrace&) = delete;

  void on_sent(queue::Instant now, const OutDatagram& sealed) override EXCLUDES(mutex_);
  void on_received(queue::Instant now, const InDatagram& datagram) override EXCLUDES(mutex_);
  void on_turn_end() override EXCLUDES(mutex_);

 private:
  std::uint64_t unix_time_ns(queue::Instant now) const;

  const std::string path_;
  const Tell tell_;
  const queue::Duration unix_offset_;  // from the monotonic clock to UTC, as of the start
  queue::Mutex mutex_;
  int fd_ GUARDED_BY(mutex_);  // -1 once a write failed: the disk is full
  std::vector<std::byte> unwritten_ GUARDED_BY(mutex_);
};

// "out.pcapng", 4711 -> "out.4711.pcapng"; "out", 4711 -> "out.4711".
std::string with_process_number(const std::string& path, int number);

}  // namespace nicless::wire

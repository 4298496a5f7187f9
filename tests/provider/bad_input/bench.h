// SPDX-License-Identifier: MIT
// What a mistake is made on: a device with a PD, two completion queues, registered memory and two connected queue
// pairs, and what the person at the terminal reads about it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "tests/provider/datagrams.h"

namespace nicless::test {

// Holds back what is written to stderr while it lives: the sentences. What is no sentence of ours is passed on.
class Hearing {
 public:
  Hearing();
  ~Hearing();
  Hearing(const Hearing&) = delete;
  Hearing& operator=(const Hearing&) = delete;

  // So far, without the "nicless: " before each.
  std::vector<std::string> sentences() const;

 private:
  std::string text() const;

  int memory_;
  int stderr_;
};

// Sentences have numbers and addresses in them that differ from run to run. One that is named is read as "{name}".
class Names {
 public:
  void add(const std::string& name, std::uint64_t number);
  void add(const std::string& name, const std::string& text);
  std::string in(std::string sentence) const;

 private:
  std::map<std::string, std::string> names_;  // as it is printed -> "{name}"
};

class Bench {
 public:
  explicit Bench(Names& names);

  // "send LOC_PROT_ERR, recv WR_FLUSH_ERR" of the next completions: so many of the send CQ, then of the receive CQ.
  std::string completions(int sends, int receives);
  // A write, read or atomic of `length` bytes at the peer's address.
  int post_remote(Qp& from, ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t rkey, std::uint32_t length = 8);
  // An errno value as its name, 0 as "accepted"; of what sets errno, whether it gave nothing and why.
  static std::string errno_name(int number);
  static std::string refusal(const void* made);

  Names& names;
  Device device;
  Cq send_cq{device};
  Cq recv_cq{device};
  Memory memory{device, 1 << 16};
  Qp a;
  Qp b;
};

ibv_qp_init_attr attr_of(Bench& bench, ibv_qp_type type = IBV_QPT_RC);
// Connected to each other, with what these attributes say at RTR and RTS in place of the usual.
struct Ways {
  unsigned access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  std::uint8_t max_dest_rd_atomic = 4;
  std::uint8_t timeout = 14;
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;
};
void connect(Qp& from, std::uint32_t to, const Ways& ways);

}  // namespace nicless::test

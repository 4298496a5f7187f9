// SPDX-License-Identifier: MIT
// Goal: a trace file holds what was traced as soon as a turn ends, and no process writes into another's file.
// Method: traces in a folder of their own, read back as bytes; the codec of the blocks has its own tests.
#include "wire/io/pcap_trace.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "wire/io/clock.h"
#include "wire/packet/pcapng.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

struct Folder {
  Folder() {
    char pattern[] = "/tmp/nicless-trace-XXXXXX";
    REQUIRE(mkdtemp(pattern) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t start_bytes() {
  std::vector<std::byte> start;
  append_pcapng_start(start);
  return start.size();
}

std::vector<std::string> told;  // by any trace
void tell(const std::string& sentence) {
  told.push_back(sentence);
}

std::unique_ptr<PcapTrace> open(const std::string& path) {
  auto trace = PcapTrace::open(path, tell);
  REQUIRE(trace.has_value());
  return std::move(*trace);
}

}  // namespace

TEST_CASE("what a turn received is in the file when the turn ends", "[pcap_trace]") {
  const Folder folder;
  const auto trace = open(folder.file("out.pcapng"));
  CHECK(contents(folder.file("out.pcapng")).size() == start_bytes());
  const std::string payload = "a payload that can be found again";
  trace->on_received(now(), {std::as_bytes(std::span(payload)), {}, {}});
  trace->on_turn_end();
  CHECK(contents(folder.file("out.pcapng")).find(payload) != std::string::npos);
}

TEST_CASE("the second to open a trace writes a file of its own, and nothing is overwritten", "[pcap_trace]") {
  const Folder folder;
  const auto first = open(folder.file("out.pcapng"));
  const auto second = open(folder.file("out.pcapng"));
  second->on_turn_end();
  CHECK(contents(folder.file("out.pcapng")).size() == start_bytes());
  const std::string own = folder.file("out." + std::to_string(getpid()) + ".pcapng");
  CHECK(contents(own).size() == start_bytes());
}

TEST_CASE("an empty file is claimed as a missing one is", "[pcap_trace]") {
  const Folder folder;
  std::ofstream(folder.file("out.pcapng")).flush();
  open(folder.file("out.pcapng"));
  CHECK(contents(folder.file("out.pcapng")).size() == start_bytes());
}

TEST_CASE("a file that cannot be made is refused with open's errno", "[pcap_trace]") {
  const auto trace = PcapTrace::open("/proc/nowhere/out.pcapng", tell);
  REQUIRE(trace.has_error());
  CHECK(trace.error().errno_value == ENOENT);
}

TEST_CASE("a file that cannot be written any further ends with one sentence", "[pcap_trace]") {
  told.clear();
  PcapTrace trace(::open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full", tell, {});
  for (int turn = 0; turn < 2; ++turn) {
    trace.on_received(now(), {});
    trace.on_turn_end();
  }
  CHECK(told == std::vector<std::string>{"the trace /dev/full ends here: No space left on device"});
}

TEST_CASE("the process number stands before the suffix of the file, not of its folder", "[pcap_trace]") {
  CHECK(with_process_number("out.pcapng", 47) == "out.47.pcapng");
  CHECK(with_process_number("/tmp/a.b/out", 47) == "/tmp/a.b/out.47");
  CHECK(with_process_number("/tmp/.hidden", 47) == "/tmp/.hidden.47");
  CHECK(with_process_number("a.tar.gz", 47) == "a.tar.47.gz");
}

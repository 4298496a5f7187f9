// SPDX-License-Identifier: MIT
// nicless-trace FILE: a capture as text, one line a packet. `nicless trace` runs it. It reads what `nicless run --pcap`
// and tcpdump write.
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "wire/packet/capture.h"
#include "wire/packet/icrc.h"
#include "wire/packet/print.h"

namespace {

using nicless::wire::CapturedDatagram;
using nicless::wire::CapturedFrame;
using nicless::wire::CaptureDirection;
using nicless::wire::CaptureReader;
using nicless::wire::check_icrc;
using nicless::wire::IcrcCheck;

constexpr const char* kUsage =
    "usage: nicless trace FILE\n"
    "\n"
    "Prints a capture (pcapng or pcap), one line for each RoCE v2 packet: number, seconds since the first, direction,\n"
    "from > to with the true UDP ports, opcode and headers. FILE - is the standard input.\n";

// Prints why it cannot, and returns nothing.
std::optional<std::vector<std::byte>> read_file(const char* path) {
  std::FILE* file = std::strcmp(path, "-") == 0 ? stdin : std::fopen(path, "rb");
  std::vector<std::byte> bytes;
  std::byte buffer[65536];
  if (file != nullptr) {
    while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, file)) {
      bytes.insert(bytes.end(), buffer, buffer + got);
    }
  }
  const bool is_read = file != nullptr && std::ferror(file) == 0;
  if (!is_read) std::fprintf(stderr, "nicless trace: cannot read %s: %s\n", path, std::strerror(errno));
  if (file != nullptr && file != stdin) std::fclose(file);
  return is_read ? std::optional(std::move(bytes)) : std::nullopt;
}

const char* text_of(CaptureDirection direction) {
  switch (direction) {
    case CaptureDirection::In:
      return "in ";
    case CaptureDirection::Out:
      return "out";
    case CaptureDirection::Unknown:
      return "-  ";
  }
  return "-  ";
}

// The whole ICRC can be checked here: a capture shows the IPv4 id.
bool has_good_icrc(const CapturedDatagram& shown) {
  const IcrcCheck check = check_icrc({shown.bytes, shown.from, shown.to});
  return check.good && check.ip_id == shown.ip_id;
}

std::string line_of(const CapturedFrame& frame) {
  const std::optional<CapturedDatagram> shown = find_datagram(frame);
  if (!shown) return "(not UDP, " + std::to_string(frame.bytes.size()) + " bytes)";
  const CapturedDatagram datagram = with_true_ports(*shown, frame.comment);
  const std::string text = datagram_to_string(datagram.bytes, datagram.from, datagram.to);
  return has_good_icrc(*shown) ? text : text + " BAD-ICRC";
}

int print_capture(const char* path) {
  const auto file = read_file(path);
  if (!file) return 1;
  std::optional<CaptureReader> reader = CaptureReader::open(*file);
  if (!reader) {
    std::fprintf(stderr, "nicless trace: %s is no capture: neither pcapng nor pcap\n", path);
    return 1;
  }
  std::uint64_t number = 0, first_ns = 0;
  while (const auto frame = reader->next()) {
    if (number++ == 0) first_ns = frame->unix_time_ns;
    const double seconds = static_cast<double>(static_cast<std::int64_t>(frame->unix_time_ns - first_ns)) / 1e9;
    std::printf("%5" PRIu64 " %12.9f %s %s\n", number, seconds, text_of(frame->direction), line_of(*frame).c_str());
  }
  if (reader->is_cut_short()) {
    std::fprintf(stderr, "nicless trace: %s ends in the middle of a packet, or holds something unknown there\n", path);
  }
  if (std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "nicless trace: cannot write: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool wants_help = argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0);
  if (wants_help) return std::fputs(kUsage, stdout) < 0;
  if (argc != 2 || (argv[1][0] == '-' && argv[1][1] != '\0')) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return print_capture(argv[1]);
}

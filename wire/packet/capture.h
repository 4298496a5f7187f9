// SPDX-License-Identifier: MIT
// Capture files read back: pcap and pcapng, either byte order, raw IP or Ethernet, and in them the UDP datagrams. Bytes
// in, values out, no file; what is malformed or cut short ends the walk and never reads past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "wire/packet/endpoint.h"

namespace nicless::wire {

enum class CaptureDirection : std::uint8_t { Unknown, In, Out };

// One captured packet. Views into the file.
struct CapturedFrame {
  std::uint64_t unix_time_ns = 0;
  CaptureDirection direction = CaptureDirection::Unknown;
  std::uint16_t link_type = 0;
  std::span<const std::byte> bytes;
  std::string_view comment;
};

class CaptureReader {
 public:
  // Nothing if `file` is no capture. `file` must outlive the reader.
  static std::optional<CaptureReader> open(std::span<const std::byte> file);

  // The next packet, or nothing at the end.
  std::optional<CapturedFrame> next();
  // After the last packet: something follows that cannot be read, as when the writing program was killed.
  bool is_cut_short() const { return !rest_.empty(); }

 private:
  struct Interface {
    std::uint16_t link_type = 0;
    std::uint64_t units_per_second = 1'000'000;  // of its time stamps
  };
  // Numbers in the byte order of the file, or of its section.
  struct Numbers {
    bool is_big_endian = false;
    std::uint32_t u16(std::span<const std::byte> bytes, std::size_t at) const { return number(bytes.subspan(at, 2)); }
    std::uint32_t u32(std::span<const std::byte> bytes, std::size_t at) const { return number(bytes.subspan(at, 4)); }
    std::uint32_t number(std::span<const std::byte> bytes) const;
  };
  CaptureReader() = default;

  bool open_pcap(std::span<const std::byte> file);
  std::optional<CapturedFrame> next_of_pcap();
  std::optional<CapturedFrame> next_of_pcapng();
  std::span<const std::byte> next_block();
  bool read_interface(std::span<const std::byte> body);
  std::optional<CapturedFrame> read_packet(std::span<const std::byte> body) const;

  std::span<const std::byte> rest_;
  bool is_pcapng_ = false;
  Numbers numbers_;
  std::vector<Interface> interfaces_;  // of this section; a pcap file has the one
};

// The UDP datagram in a frame.
struct CapturedDatagram {
  Endpoint from;
  Endpoint to;
  std::uint16_t ip_id = 0;  // 0 over IPv6
  std::span<const std::byte> bytes;
};

// Nothing if the frame holds none, or only a part of one.
std::optional<CapturedDatagram> find_datagram(const CapturedFrame& frame);

// The ports a nicless trace tells in its comment ("udp 40001>40002"), in place of those it shows.
CapturedDatagram with_true_ports(const CapturedDatagram& shown, std::string_view comment);

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "wire/packet/capture.h"

#include <algorithm>
#include <charconv>

#include "wire/packet/byte_io.h"
#include "wire/packet/ip_header.h"
#include "wire/packet/pcapng_format.h"
#include "wire/packet/raw_gid.h"

namespace nicless::wire {
namespace {

using View = std::span<const std::byte>;

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::size_t kPcapHeaderBytes = 24;
constexpr std::size_t kPcapRecordBytes = 16;

// pcapng, chapter 3.1: type and length before the body of a block, the length again behind it.
constexpr std::size_t kBlockHeadBytes = 8;
constexpr std::size_t kBlockTailBytes = 4;
constexpr std::size_t kPacketHeadBytes = 20;

constexpr std::size_t padded_to_word(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

// Link types and where they keep the Ethernet type of what follows.
struct LinkHeader {
  std::uint16_t link_type;
  std::size_t bytes;
  std::size_t type_at;
};
constexpr LinkHeader kLinkHeaders[] = {
    {pcapng::kLinkTypeEthernet, 14, 12},
    {113, 16, 14},  // Linux "any" interface
    {276, 20, 0},   // and its second version
};
constexpr std::uint32_t kEtherTypeIpv4 = 0x0800;
constexpr std::uint32_t kEtherTypeIpv6 = 0x86dd;

// The IP packet behind the link's header; empty if there is none.
View ip_packet(const CapturedFrame& frame) {
  if (frame.link_type == pcapng::kLinkTypeRawIp) return frame.bytes;
  for (const LinkHeader& header : kLinkHeaders) {
    if (frame.link_type != header.link_type || frame.bytes.size() < header.bytes) continue;
    const std::uint16_t type = FixedReader<2>(frame.bytes.subspan(header.type_at).first<2>()).u16<0>();
    if (type == kEtherTypeIpv4 || type == kEtherTypeIpv6) return frame.bytes.subspan(header.bytes);
  }
  return {};
}

// `udp`: from the UDP header to the end of the IP packet.
std::optional<CapturedDatagram> read_udp(const Gid& from, const Gid& to, std::uint16_t ip_id, View udp) {
  if (udp.size() < kUdpHeaderBytes) return std::nullopt;
  const FixedReader<kUdpHeaderBytes> r(udp.first<kUdpHeaderBytes>());
  const std::size_t length = r.u16<4>();
  if (length < kUdpHeaderBytes || length > udp.size()) return std::nullopt;
  return CapturedDatagram{{from, r.u16<0>()}, {to, r.u16<2>()}, ip_id, udp.first(length).subspan(kUdpHeaderBytes)};
}

std::optional<CapturedDatagram> read_ipv4(View ip) {
  if (ip.size() < kIpv4HeaderBytes) return std::nullopt;
  const FixedReader<kIpv4HeaderBytes> r(ip.first<kIpv4HeaderBytes>());
  const std::size_t header_bytes = (r.u8<0>() & 15u) * 4;
  const std::size_t total_bytes = r.u16<2>();
  const bool is_fragment = (r.u16<6>() & 0x3fff) != 0;
  if (is_fragment || r.u8<9>() != kIpProtocolUdp) return std::nullopt;
  if (header_bytes < kIpv4HeaderBytes || total_bytes < header_bytes || total_bytes > ip.size()) return std::nullopt;
  return read_udp(from_ipv4(r.view<12, 4>()), from_ipv4(r.view<16, 4>()), r.u16<4>(),
                  ip.first(total_bytes).subspan(header_bytes));
}

std::optional<CapturedDatagram> read_ipv6(View ip) {
  if (ip.size() < kIpv6HeaderBytes) return std::nullopt;
  const FixedReader<kIpv6HeaderBytes> r(ip.first<kIpv6HeaderBytes>());
  const std::size_t payload_bytes = r.u16<4>();
  if (r.u8<6>() != kIpProtocolUdp || payload_bytes > ip.size() - kIpv6HeaderBytes) return std::nullopt;
  return read_udp(from_bytes(r.view<8, 16>()), from_bytes(r.view<24, 16>()), 0,
                  ip.subspan(kIpv6HeaderBytes, payload_bytes));
}

std::uint64_t to_nanoseconds(std::uint64_t units, std::uint64_t units_per_second) {
  return units / units_per_second * kNanosecondsPerSecond +
         units % units_per_second * kNanosecondsPerSecond / units_per_second;
}

// pcapng, chapter 4.2: a power of ten, or with the high bit a power of two. Nothing for what is finer than we count.
std::optional<std::uint64_t> units_per_second(std::uint8_t resolution) {
  const unsigned exponent = resolution & 0x7f;
  if ((resolution & 0x80) != 0) return exponent <= 30 ? std::optional(std::uint64_t{1} << exponent) : std::nullopt;
  if (exponent > 9) return std::nullopt;
  std::uint64_t units = 1;
  for (unsigned i = 0; i < exponent; ++i) units *= 10;
  return units;
}

std::string_view as_text(View bytes) {
  return {static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()};
}

// Calls on_option(code, value) for each whole option. pcapng, chapter 3.5.
template <typename Numbers, typename OnOption>
void for_each_option(const Numbers& numbers, View options, OnOption on_option) {
  while (options.size() >= 4) {
    const std::uint32_t code = numbers.u16(options, 0);
    const std::size_t bytes = numbers.u16(options, 2);
    if (code == static_cast<std::uint32_t>(pcapng::Option::End) || padded_to_word(bytes) > options.size() - 4) return;
    on_option(static_cast<pcapng::Option>(code), options.subspan(4, bytes));
    options = options.subspan(4 + padded_to_word(bytes));
  }
}

}  // namespace

std::uint32_t CaptureReader::Numbers::number(View bytes) const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = is_big_endian ? i : bytes.size() - 1 - i;
    value = value << 8 | std::to_integer<std::uint32_t>(bytes[at]);
  }
  return value;
}

std::optional<CaptureReader> CaptureReader::open(View file) {
  CaptureReader reader;
  if (file.size() < kPcapHeaderBytes) return std::nullopt;
  const std::uint32_t magic = Numbers{true}.u32(file, 0);
  reader.is_pcapng_ = magic == static_cast<std::uint32_t>(pcapng::BlockType::SectionHeader);
  reader.rest_ = file;
  if (!reader.is_pcapng_ && !reader.open_pcap(file)) return std::nullopt;
  return reader;
}

// The magic of a pcap file tells its byte order and the unit of its time stamps.
bool CaptureReader::open_pcap(View file) {
  constexpr std::uint32_t kMicroseconds = 0xa1b2c3d4, kNanoseconds = 0xa1b23c4d;
  for (const bool is_big_endian : {false, true}) {
    numbers_ = {is_big_endian};
    const std::uint32_t magic = numbers_.u32(file, 0);
    if (magic != kMicroseconds && magic != kNanoseconds) continue;
    const auto link_type = static_cast<std::uint16_t>(numbers_.u32(file, 20) & 0xffff);
    interfaces_.push_back({link_type, magic == kMicroseconds ? 1'000'000 : kNanosecondsPerSecond});
    rest_ = file.subspan(kPcapHeaderBytes);
    return true;
  }
  return false;
}

std::optional<CapturedFrame> CaptureReader::next() {
  return is_pcapng_ ? next_of_pcapng() : next_of_pcap();
}

std::optional<CapturedFrame> CaptureReader::next_of_pcap() {
  if (rest_.size() < kPcapRecordBytes) return std::nullopt;
  const std::size_t bytes = numbers_.u32(rest_, 8);
  if (bytes > rest_.size() - kPcapRecordBytes) return std::nullopt;
  const Interface& interface = interfaces_.front();
  CapturedFrame frame;
  frame.unix_time_ns = numbers_.u32(rest_, 0) * kNanosecondsPerSecond +
                       to_nanoseconds(numbers_.u32(rest_, 4), interface.units_per_second);
  frame.link_type = interface.link_type;
  frame.bytes = rest_.subspan(kPcapRecordBytes, bytes);
  rest_ = rest_.subspan(kPcapRecordBytes + bytes);
  return frame;
}

std::optional<CapturedFrame> CaptureReader::next_of_pcapng() {
  while (true) {
    const View block = next_block();
    if (block.empty()) return std::nullopt;
    const View body = block.subspan(kBlockHeadBytes, block.size() - kBlockHeadBytes - kBlockTailBytes);
    std::optional<CapturedFrame> frame;
    switch (static_cast<pcapng::BlockType>(numbers_.u32(block, 0))) {
      case pcapng::BlockType::SectionHeader:
        interfaces_.clear();
        break;
      case pcapng::BlockType::InterfaceDescription:
        if (!read_interface(body)) return std::nullopt;
        break;
      case pcapng::BlockType::EnhancedPacket:
        frame = read_packet(body);
        if (!frame) return std::nullopt;
        break;
      default:
        break;  // blocks of other kinds are skipped
    }
    rest_ = rest_.subspan(block.size());
    if (frame) return frame;
  }
}

// The block at the front of rest_, all of it; empty when none is there whole. A section header also sets the byte
// order.
View CaptureReader::next_block() {
  constexpr std::size_t kSmallest = kBlockHeadBytes + kBlockTailBytes;
  if (rest_.size() < kSmallest) return {};
  if (numbers_.u32(rest_, 0) == static_cast<std::uint32_t>(pcapng::BlockType::SectionHeader)) {
    numbers_.is_big_endian = Numbers{true}.u32(rest_, kBlockHeadBytes) == pcapng::kByteOrderMagic;
    if (numbers_.u32(rest_, kBlockHeadBytes) != pcapng::kByteOrderMagic) return {};
  }
  const std::size_t bytes = numbers_.u32(rest_, 4);
  if (bytes < kSmallest || bytes % 4 != 0 || bytes > rest_.size()) return {};
  return rest_.first(bytes);
}

bool CaptureReader::read_interface(View body) {
  if (body.size() < 8) return false;
  Interface interface;
  interface.link_type = static_cast<std::uint16_t>(numbers_.u16(body, 0));
  bool is_known = true;
  for_each_option(numbers_, body.subspan(8), [&](pcapng::Option code, View value) {
    if (code != pcapng::Option::TimeResolution || value.size() != 1) return;
    const auto units = units_per_second(std::to_integer<std::uint8_t>(value[0]));
    is_known = units.has_value();
    interface.units_per_second = units.value_or(1);
  });
  interfaces_.push_back(interface);
  return is_known;
}

std::optional<CapturedFrame> CaptureReader::read_packet(View body) const {
  if (body.size() < kPacketHeadBytes) return std::nullopt;
  const std::size_t interface = numbers_.u32(body, 0);
  const std::size_t bytes = numbers_.u32(body, 12);
  if (interface >= interfaces_.size() || padded_to_word(bytes) > body.size() - kPacketHeadBytes) return std::nullopt;
  const std::uint64_t units = std::uint64_t{numbers_.u32(body, 4)} << 32 | numbers_.u32(body, 8);
  CapturedFrame frame;
  frame.unix_time_ns = to_nanoseconds(units, interfaces_[interface].units_per_second);
  frame.link_type = interfaces_[interface].link_type;
  frame.bytes = body.subspan(kPacketHeadBytes, bytes);
  const View options = body.subspan(kPacketHeadBytes + padded_to_word(bytes));
  for_each_option(numbers_, options, [&](pcapng::Option code, View value) {
    if (code == pcapng::Option::Comment) frame.comment = as_text(value);
    if (code != pcapng::Option::PacketFlags || value.size() != 4) return;
    const auto direction = static_cast<std::byte>(numbers_.u32(value, 0) & 3);
    if (direction == pcapng::kInbound) frame.direction = CaptureDirection::In;
    if (direction == pcapng::kOutbound) frame.direction = CaptureDirection::Out;
  });
  return frame;
}

std::optional<CapturedDatagram> find_datagram(const CapturedFrame& frame) {
  const View ip = ip_packet(frame);
  if (ip.empty()) return std::nullopt;
  switch (std::to_integer<unsigned>(ip[0]) >> 4) {
    case 4:
      return read_ipv4(ip);
    case 6:
      return read_ipv6(ip);
    default:
      return std::nullopt;
  }
}

CapturedDatagram with_true_ports(const CapturedDatagram& shown, std::string_view comment) {
  constexpr std::string_view kStart = "udp ";
  if (!comment.starts_with(kStart)) return shown;
  const char* const end = comment.data() + comment.size();
  CapturedDatagram datagram = shown;
  const auto from = std::from_chars(comment.data() + kStart.size(), end, datagram.from.port);
  if (from.ec != std::errc() || from.ptr == end || *from.ptr != '>') return shown;
  const auto to = std::from_chars(from.ptr + 1, end, datagram.to.port);
  return to.ec == std::errc() && to.ptr == end ? datagram : shown;
}

}  // namespace nicless::wire

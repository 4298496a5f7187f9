// SPDX-License-Identifier: MIT
#include "wire/packet/pcapng.h"

#include <string>
#include <string_view>

#include "wire/packet/icrc.h"
#include "wire/packet/ip_header.h"
#include "wire/packet/pcapng_format.h"

namespace nicless::wire {
namespace {

using Bytes = std::vector<std::byte>;

// Little-endian numbers; the section header's magic says so.
template <typename Number>
void put(Number number, Bytes& out) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) out.push_back(static_cast<std::byte>((number >> (8 * i)) & 0xff));
}

void put_bytes(std::span<const std::byte> bytes, Bytes& out) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void pad_to_word(Bytes& out, std::size_t block_start) {
  while ((out.size() - block_start) % 4 != 0) out.push_back(std::byte{0});
}

// A block: type and total length, the body, the total length again.
class Block {
 public:
  Block(pcapng::BlockType type, Bytes& out) : start_(out.size()), out_(out) {
    put(static_cast<std::uint32_t>(type), out_);
    put(std::uint32_t{0}, out_);  // known at the end
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void option(pcapng::Option code, std::span<const std::byte> value) {
    put(static_cast<std::uint16_t>(code), out_);
    put(static_cast<std::uint16_t>(value.size()), out_);
    put_bytes(value, out_);
    pad_to_word(out_, start_);
  }
  void option(pcapng::Option code, std::string_view value) { option(code, std::as_bytes(std::span(value))); }

  void finish() {
    const auto length = static_cast<std::uint32_t>(out_.size() - start_ + 4);
    put(length, out_);
    for (std::size_t i = 0; i < 4; ++i) out_[start_ + 4 + i] = static_cast<std::byte>((length >> (8 * i)) & 0xff);
  }

 private:
  std::size_t start_;
  Bytes& out_;
};

// The one's complement sum of RFC 1071, unfolded; `bytes` but for the last of several must be even.
std::uint64_t sum_words(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    const unsigned low = i + 1 < bytes.size() ? std::to_integer<unsigned>(bytes[i + 1]) : 0;
    sum += std::to_integer<unsigned>(bytes[i]) << 8 | low;
  }
  return sum;
}

std::uint16_t checksum_of(std::uint64_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum & 0xffff);
}

std::uint16_t udp_checksum(const UdpFlow& flow, std::span<const std::byte> payload) {
  std::array<std::byte, kUdpHeaderBytes> header;
  write_udp(flow, 0, header);
  // A mapped prefix would not be summed: only an IPv4 address's four bytes travel.
  const std::size_t address_bytes = flow.to.address.is_ipv4() ? 4 : 16;
  const std::uint64_t sum = sum_words(std::span(flow.from.address.bytes).last(address_bytes)) +
                            sum_words(std::span(flow.to.address.bytes).last(address_bytes)) + kIpProtocolUdp +
                            kUdpHeaderBytes + payload.size() + sum_words(header) + sum_words(payload);
  const std::uint16_t checksum = checksum_of(sum);
  return checksum == 0 ? 0xffff : checksum;  // 0 would mean: none
}

void put_ip_header(const UdpFlow& flow, const IpOptions& ip, std::uint16_t ip_id, Bytes& out) {
  if (flow.to.address.is_ipv4()) {
    std::array<std::byte, kIpv4HeaderBytes> header;
    Ipv4Fields fields{ip.traffic_class, ip_id, ip.hop_limit, 0};
    write_ipv4(flow, fields, header);
    fields.checksum = checksum_of(sum_words(header));
    write_ipv4(flow, fields, header);
    put_bytes(header, out);
  } else {
    std::array<std::byte, kIpv6HeaderBytes> header;
    write_ipv6(flow, {ip.traffic_class, 0, ip.hop_limit}, header);
    put_bytes(header, out);
  }
}

Endpoint shown_source(Endpoint from) {
  if (from.port < pcapng::kShownPort) from.port |= pcapng::kShownSourcePortBits;
  return from;
}

// The packet as it is shown: IP and UDP headers, the payload with an ICRC that fits them.
Bytes shown_packet(const TracedDatagram& datagram) {
  const UdpFlow flow{shown_source(datagram.from), {datagram.to.address, pcapng::kShownPort}, datagram.bytes.size()};
  const IcrcCheck check = check_icrc({datagram.bytes, datagram.from, datagram.to});
  Bytes payload(datagram.bytes.begin(), datagram.bytes.end());
  if (check.good) {
    const std::uint32_t icrc = compute_icrc({datagram.bytes, flow.from, flow.to}, check.ip_id);
    store_icrc(icrc, std::span(payload).last(kIcrcBytes));
  }
  Bytes packet;
  packet.reserve(kIpv6HeaderBytes + kUdpHeaderBytes + payload.size());
  put_ip_header(flow, datagram.ip, check.ip_id, packet);
  std::array<std::byte, kUdpHeaderBytes> udp;
  write_udp(flow, udp_checksum(flow, payload), udp);
  put_bytes(udp, packet);
  put_bytes(payload, packet);
  return packet;
}

}  // namespace

void append_pcapng_start(Bytes& out) {
  Block section(pcapng::BlockType::SectionHeader, out);
  put(pcapng::kByteOrderMagic, out);
  put(std::uint16_t{1}, out);  // version 1.0
  put(std::uint16_t{0}, out);
  put(~std::uint64_t{0}, out);  // the section's length is not known
  section.option(pcapng::Option::Hardware, "nicless");
  section.option(pcapng::Option::Application, "nicless");
  section.option(pcapng::Option::End, std::string_view());
  section.finish();

  Block interface(pcapng::BlockType::InterfaceDescription, out);
  put(pcapng::kLinkTypeRawIp, out);
  put(std::uint16_t{0}, out);  // reserved
  put(std::uint32_t{0}, out);  // packets are never cut
  interface.option(pcapng::Option::InterfaceName, "nicless0");
  interface.option(pcapng::Option::TimeResolution, std::array{std::byte{9}});  // 10^-9 s
  interface.option(pcapng::Option::End, std::string_view());
  interface.finish();
}

void append_pcapng(const TracedDatagram& datagram, Bytes& out) {
  const Bytes packet = shown_packet(datagram);
  const std::string comment = "udp " + std::to_string(datagram.from.port) + ">" + std::to_string(datagram.to.port);
  const std::array flags{datagram.is_outbound ? pcapng::kOutbound : pcapng::kInbound, std::byte{0}, std::byte{0},
                         std::byte{0}};
  const std::size_t start = out.size();
  Block block(pcapng::BlockType::EnhancedPacket, out);
  put(std::uint32_t{0}, out);  // the first interface
  put(static_cast<std::uint32_t>(datagram.unix_time_ns >> 32), out);
  put(static_cast<std::uint32_t>(datagram.unix_time_ns), out);
  put(static_cast<std::uint32_t>(packet.size()), out);
  put(static_cast<std::uint32_t>(packet.size()), out);
  put_bytes(packet, out);
  pad_to_word(out, start);
  block.option(pcapng::Option::Comment, comment);
  block.option(pcapng::Option::PacketFlags, flags);
  block.option(pcapng::Option::End, std::string_view());
  block.finish();
}

}  // namespace nicless::wire

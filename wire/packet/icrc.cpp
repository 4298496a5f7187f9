// SPDX-License-Identifier: MIT
#include "wire/packet/icrc.h"

#include <isa-l/crc.h>
#include <algorithm>
#include <array>

#include "wire/packet/byte_io.h"

namespace nicless::wire {
namespace {

constexpr std::size_t kMaskedLrhBytes = 8;  // all ones, for the InfiniBand header that RoCE has not
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kUdpBytes = 8;
constexpr std::uint8_t kProtocolUdp = 17;
constexpr std::uint16_t kDontFragment = 0x4000;

// What the CRC covers up to the end of the BTH, with the fields that routers change set to ones. IBTA A17.3.3.
struct PseudoHeader {
  static constexpr std::size_t kBytesMax = kMaskedLrhBytes + kIpv6Bytes + kUdpBytes + Bth::kSize;
  std::array<std::byte, kBytesMax> bytes;
  std::size_t size = 0;
  std::span<const std::byte> view() const { return std::span(bytes).first(size); }
};

struct Flow {
  const Endpoint& from;
  const Endpoint& to;
  std::size_t udp_payload_bytes;  // BTH to ICRC
};

void put_ipv4(const Flow& flow, std::uint16_t id, std::span<std::byte, kIpv4Bytes> out) {
  FixedWriter<kIpv4Bytes> w(out);
  w.u8<0>(0x45);
  w.u8<1>(0xff);
  w.u16<2>(static_cast<std::uint16_t>(kIpv4Bytes + kUdpBytes + flow.udp_payload_bytes));
  w.u16<4>(id);
  w.u16<6>(kDontFragment);
  w.u8<8>(0xff);
  w.u8<9>(kProtocolUdp);
  w.u16<10>(0xffff);
  std::ranges::copy(std::span(flow.from.address.bytes).last<4>(), w.view<12, 4>().begin());
  std::ranges::copy(std::span(flow.to.address.bytes).last<4>(), w.view<16, 4>().begin());
}

void put_ipv6(const Flow& flow, std::span<std::byte, kIpv6Bytes> out) {
  FixedWriter<kIpv6Bytes> w(out);
  w.u32<0>(0x6fffffff);
  w.u16<4>(static_cast<std::uint16_t>(kUdpBytes + flow.udp_payload_bytes));
  w.u8<6>(kProtocolUdp);
  w.u8<7>(0xff);
  w.array<8>(flow.from.address.bytes);
  w.array<24>(flow.to.address.bytes);
}

void put_udp(const Flow& flow, std::span<std::byte, kUdpBytes> out) {
  FixedWriter<kUdpBytes> w(out);
  w.u16<0>(flow.from.port);
  w.u16<2>(flow.to.port);
  w.u16<4>(static_cast<std::uint16_t>(kUdpBytes + flow.udp_payload_bytes));
  w.u16<6>(0xffff);
}

PseudoHeader pseudo_header(const Flow& flow, std::uint16_t ip_id, std::span<const std::byte, Bth::kSize> bth) {
  PseudoHeader header;
  std::span<std::byte> rest = header.bytes;
  std::ranges::fill(rest.first<kMaskedLrhBytes>(), std::byte{0xff});
  rest = rest.subspan(kMaskedLrhBytes);
  if (flow.to.address.is_ipv4()) {
    put_ipv4(flow, ip_id, rest.first<kIpv4Bytes>());
    rest = rest.subspan(kIpv4Bytes);
  } else {
    put_ipv6(flow, rest.first<kIpv6Bytes>());
    rest = rest.subspan(kIpv6Bytes);
  }
  put_udp(flow, rest.first<kUdpBytes>());
  rest = rest.subspan(kUdpBytes);
  std::ranges::copy(bth, rest.begin());
  rest[4] = std::byte{0xff};  // resv8a: congestion marks change on the way
  header.size = header.bytes.size() - (rest.size() - Bth::kSize);
  return header;
}

std::uint32_t crc(std::uint32_t so_far, std::span<const std::byte> bytes) {
  if (bytes.empty()) return so_far;
  // ISA-L takes a byte pointer that is no std::byte; the bytes are only read.
  return crc32_gzip_refl(so_far, static_cast<const unsigned char*>(static_cast<const void*>(bytes.data())),
                         bytes.size());
}

// CRC arithmetic: residues of polynomials over GF(2), bit 31 is x^0, as the reflected CRC-32 keeps them.
constexpr std::uint32_t kPolynomial = 0xedb88320;
constexpr std::uint32_t kOne = 0x80000000;

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & kOne) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

constexpr std::uint32_t divide_by_x(std::uint32_t a) {
  return (a & kOne) != 0 ? ((a ^ kPolynomial) << 1) | 1 : a << 1;
}

// x^-8n for n = low + 256 * high, as a product of two entries.
struct RewindTable {
  std::array<std::uint32_t, 256> low{};
  std::array<std::uint32_t, 256> high{};
};

constexpr RewindTable make_rewind_table() {
  RewindTable table;
  std::uint32_t power = kOne;
  for (std::uint32_t& entry : table.low) {
    entry = power;
    for (int bit = 0; bit < 8; ++bit) power = divide_by_x(power);
  }
  const std::uint32_t step = power;  // x^-8*256
  power = kOne;
  for (std::uint32_t& entry : table.high) {
    entry = power;
    power = multiply(power, step);
  }
  return table;
}

constexpr RewindTable kRewind = make_rewind_table();

// What a CRC register held before `bytes` zero bytes went in. bytes < 65536.
std::uint32_t rewind(std::uint32_t crc_difference, std::size_t bytes) {
  return multiply(multiply(kRewind.low[bytes & 0xff], kRewind.high[bytes >> 8]), crc_difference);
}

// CRC is linear: the CRC with id 0 and the one that came differ by what the id's two bytes do, carried through all that
// follows. Taken back through those bytes, it must be the id itself, and nothing above 16 bits.
IcrcCheck recover_ip_id(std::uint32_t difference, std::size_t datagram_bytes) {
  if (difference == 0) return {true, 0};
  constexpr std::size_t kFromIdToUdp = kIpv4Bytes - 4;
  const std::size_t covered = kFromIdToUdp + kUdpBytes + datagram_bytes - kIcrcBytes;
  const std::uint32_t id = rewind(difference, covered);
  if (id > 0xffff) return {};
  return {true, static_cast<std::uint16_t>((id << 8 | id >> 8) & 0xffff)};
}

std::uint32_t load_icrc(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kIcrcBytes; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

void seal(OutDatagram& datagram, std::uint16_t ip_id) {
  const Flow flow{datagram.from, datagram.to, datagram.size()};
  const std::span<const std::byte> header = std::span(datagram.header).first(datagram.header_bytes);
  std::uint32_t value = crc(0, pseudo_header(flow, ip_id, header.first<Bth::kSize>()).view());
  value = crc(value, header.subspan(Bth::kSize));
  for (std::size_t i = 0; i < datagram.span_count; ++i) value = crc(value, datagram.spans[i]);
  value = crc(value, std::span(datagram.trailer).first(datagram.pad_bytes));
  for (std::size_t i = 0; i < kIcrcBytes; ++i) {
    datagram.trailer[datagram.pad_bytes + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  }
}

IcrcCheck check_icrc(const InDatagram& datagram) {
  const std::span<const std::byte> bytes = datagram.bytes;
  if (bytes.size() < Bth::kSize + kIcrcBytes || bytes.size() > 0xffff - kIpv4Bytes - kUdpBytes) return {};
  const Flow flow{datagram.from, datagram.to, bytes.size()};
  std::uint32_t value = crc(0, pseudo_header(flow, 0, bytes.first<Bth::kSize>()).view());
  value = crc(value, bytes.subspan(Bth::kSize, bytes.size() - Bth::kSize - kIcrcBytes));
  const std::uint32_t difference = value ^ load_icrc(bytes.last(kIcrcBytes));
  if (datagram.to.address.is_ipv4()) return recover_ip_id(difference, bytes.size());
  return {difference == 0, 0};
}

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "wire/packet/icrc.h"

#include <isa-l/crc.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>

#include "queue/guarded_copy.h"
#include "wire/packet/ip_header.h"

namespace nicless::wire {
namespace {

constexpr std::size_t kMaskedLrhBytes = 8;  // all ones, for the InfiniBand header that RoCE has not

// What the CRC covers up to the end of the BTH, with the fields that routers change set to ones. IBTA A17.3.3.
struct PseudoHeader {
  static constexpr std::size_t kBytesMax = kMaskedLrhBytes + kIpv6HeaderBytes + kUdpHeaderBytes + Bth::kSize;
  std::array<std::byte, kBytesMax> bytes;
  std::size_t size = 0;
  std::span<const std::byte> view() const { return std::span(bytes).first(size); }
};

PseudoHeader pseudo_header(const UdpFlow& flow, std::uint16_t ip_id, std::span<const std::byte, Bth::kSize> bth) {
  PseudoHeader header;
  std::span<std::byte> rest = header.bytes;
  std::ranges::fill(rest.first<kMaskedLrhBytes>(), std::byte{0xff});
  rest = rest.subspan(kMaskedLrhBytes);
  if (flow.to.address.is_ipv4()) {
    write_ipv4(flow, {0xff, ip_id, 0xff, 0xffff}, rest.first<kIpv4HeaderBytes>());
    rest = rest.subspan(kIpv4HeaderBytes);
  } else {
    write_ipv6(flow, {0xff, 0xfffff, 0xff}, rest.first<kIpv6HeaderBytes>());
    rest = rest.subspan(kIpv6HeaderBytes);
  }
  write_udp(flow, 0xffff, rest.first<kUdpHeaderBytes>());
  rest = rest.subspan(kUdpHeaderBytes);
  std::ranges::copy(bth, rest.begin());
  rest[4] = std::byte{0xff};  // resv8a: congestion marks change on the way
  header.size = header.bytes.size() - (rest.size() - Bth::kSize);
  return header;
}

#if defined(__x86_64__)
[[gnu::target("avx")]] void clear_upper_halves() {
  _mm256_zeroupper();
}

// ISA-L returns with the upper halves of the vector registers in use, and from then on every SSE instruction of the
// thread is slower, the program's own included: measured, hundreds of nanoseconds a packet.
void leave_vector_code() {
  if (__builtin_cpu_supports("avx")) clear_upper_halves();
}
#else
void leave_vector_code() {}
#endif

// ISA-L takes a byte pointer that is no std::byte; the bytes are only read.
std::uint32_t isal_crc(std::uint32_t so_far, std::span<const std::byte> bytes) {
  return crc32_gzip_refl(so_far, static_cast<const unsigned char*>(static_cast<const void*>(bytes.data())),
                         bytes.size());
}

std::uint32_t crc(std::uint32_t so_far, std::span<const std::byte> bytes) {
  if (bytes.empty()) return so_far;
  const std::uint32_t value = isal_crc(so_far, bytes);
  leave_vector_code();
  return value;
}

// Of registered memory. That it cannot be read any more shows in a wrong CRC, if the datagram leaves at all.
std::uint32_t crc_of_memory(std::uint32_t so_far, std::span<const std::byte> bytes) {
  std::uint32_t value = so_far;
  queue::guarded(bytes, [&] { value = isal_crc(so_far, bytes); });
  leave_vector_code();
  return value;
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

// CRC is linear: the CRC with an assumed id and the one that came differ by what the two ids' difference does, carried
// through all that follows. Taken back through those bytes, it must be that difference, and nothing above 16 bits.
IcrcCheck recover_ip_id(std::uint32_t difference, std::uint16_t assumed, std::size_t datagram_bytes) {
  if (difference == 0) return {true, assumed};
  constexpr std::size_t kFromIdToUdp = kIpv4HeaderBytes - 4;
  const std::size_t covered = kFromIdToUdp + kUdpHeaderBytes + datagram_bytes - kIcrcBytes;
  const std::uint32_t id = rewind(difference, covered);
  if (id > 0xffff) return {};
  return {true, static_cast<std::uint16_t>(assumed ^ ((id << 8 | id >> 8) & 0xffff))};
}

// The ICRC stands least significant byte first.
std::uint32_t load_icrc(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kIcrcBytes; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

void store_icrc(std::uint32_t icrc, std::span<std::byte> out) {
  for (std::size_t i = 0; i < kIcrcBytes; ++i) out[i] = static_cast<std::byte>((icrc >> (8 * i)) & 0xff);
}

void seal(OutDatagram& datagram, std::uint16_t ip_id) {
  const UdpFlow flow{datagram.from, datagram.to, datagram.size()};
  const std::span<const std::byte> header = std::span(datagram.header).first(datagram.header_bytes);
  std::uint32_t value = crc(0, pseudo_header(flow, ip_id, header.first<Bth::kSize>()).view());
  value = crc(value, header.subspan(Bth::kSize));
  for (std::size_t i = 0; i < datagram.span_count; ++i) value = crc_of_memory(value, datagram.spans[i]);
  value = crc(value, std::span(datagram.trailer).first(datagram.pad_bytes));
  store_icrc(value, std::span(datagram.trailer).subspan(datagram.pad_bytes));
}

std::uint32_t compute_icrc(const InDatagram& datagram, std::uint16_t ip_id) {
  const std::span<const std::byte> bytes = datagram.bytes;
  const UdpFlow flow{datagram.from, datagram.to, bytes.size()};
  const std::uint32_t value = crc(0, pseudo_header(flow, ip_id, bytes.first<Bth::kSize>()).view());
  return crc(value, bytes.subspan(Bth::kSize, bytes.size() - Bth::kSize - kIcrcBytes));
}

IcrcCheck check_icrc(const InDatagram& datagram) {
  const std::span<const std::byte> bytes = datagram.bytes;
  if (bytes.size() < Bth::kSize + kIcrcBytes || bytes.size() > kUdpPayloadBytesMax) return {};
  const std::uint32_t difference = compute_icrc(datagram, datagram.likely_ip_id) ^ load_icrc(bytes.last(kIcrcBytes));
  if (datagram.to.address.is_ipv4()) return recover_ip_id(difference, datagram.likely_ip_id, bytes.size());
  return {difference == 0, 0};
}

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "wire/packet/mad.h"

#include <utility>

#include "wire/packet/mad_body.h"
#include "wire/packet/raw_gid.h"

namespace nicless::wire {
namespace {

// The common header of a CM message, IBTA 13.4.3 and table 99 (12.4).
//
//   0             1      2              3       4..7  8..15  16..17     18..19  20..23
//   base version  class  class version  method  0     TID    attribute  0       modifier: the options of ECE
constexpr std::uint8_t kBaseVersion = 1;
constexpr std::uint8_t kCmClass = 0x07;
constexpr std::uint8_t kCmClassVersion = 2;
constexpr std::uint8_t kMethodSend = 0x03;

// Attribute ids of the messages, IBTA table 100 (12.4): consecutive, in the order of CmMessage::Body.
constexpr std::uint16_t kFirstAttribute = 0x0010;
constexpr const char* kNames[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                  "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
constexpr std::size_t kKinds = std::variant_size_v<CmMessage::Body>;
static_assert(std::size(kNames) == kKinds);

// At kKinds or above: no such message.
std::size_t kind_of(const FixedReader<kMadHeaderBytes>& header) {
  return std::size_t{header.u16<16>()} - kFirstAttribute;  // below the first: a huge number
}

template <typename Body>
CmMessage::Body read_as(const MadBodyReader& r) {
  Body body;
  read(r, body);
  return body;
}

template <std::size_t... Kind>
CmMessage::Body read_kind(std::size_t kind, const MadBodyReader& r, std::index_sequence<Kind...>) {
  using Read = CmMessage::Body (*)(const MadBodyReader&);
  static constexpr Read kRead[] = {&read_as<std::variant_alternative_t<Kind, CmMessage::Body>>...};
  return kRead[kind](r);
}

DecodedCm failed(CmDecodeError error) {
  return {error, {}};
}

template <typename Body>
void set_ece_options(Body& body, std::uint32_t options) {
  if constexpr (requires { body.ece; }) body.ece.options = options;
}

template <typename Body>
std::uint32_t ece_options(const Body& body) {
  if constexpr (requires { body.ece; }) return body.ece.options;
  return 0;
}

template <typename Request>
void put_private_data(Request& request, const CmaHeader& cma, std::span<const std::byte> user) {
  NICLESS_CHECK(user.size() <= Request::kUserBytes);
  request.private_data.fill(std::byte{0});
  const std::span<std::byte> out = request.private_data;
  cma.encode(out.first<CmaHeader::kSize>());
  std::ranges::copy(user, out.subspan(CmaHeader::kSize).begin());
}

template <typename Request>
std::optional<CmaHeader> cma_of(const Request& request) {
  return CmaHeader::decode(std::span(request.private_data).template first<CmaHeader::kSize>());
}

// An IPv4 address stands at the end of its field.
Gid address_in(std::span<const std::byte, 16> field, std::uint8_t ip_version) {
  return ip_version == 4 ? from_ipv4(field.last<4>()) : from_bytes(field);
}

}  // namespace

std::optional<PortSpace> port_space_of(ServiceId id) {
  const std::uint64_t space = id.value() >> 16;
  for (const PortSpace known : {PortSpace::IpoIb, PortSpace::Tcp, PortSpace::Udp, PortSpace::Ib}) {
    if (space == static_cast<std::uint16_t>(known)) return known;
  }
  return std::nullopt;
}

std::optional<CmaHeader> CmaHeader::decode(std::span<const std::byte, kSize> in) {
  const FixedReader<kSize> r(in);
  CmaHeader cma;
  cma.ip_version = r.u8<1>() >> 4;
  if (r.u8<0>() != 0 || (cma.ip_version != 4 && cma.ip_version != 6)) return std::nullopt;
  cma.source_port = r.u16<2>();
  cma.source = address_in(r.view<4, 16>(), cma.ip_version);
  cma.destination = address_in(r.view<20, 16>(), cma.ip_version);
  return cma;
}

void CmaHeader::encode(std::span<std::byte, kSize> out) const {
  FixedWriter<kSize> w(out);
  w.u8<1>(static_cast<std::uint8_t>(ip_version << 4));
  w.u16<2>(source_port);
  w.array<4>(source.bytes);
  w.array<20>(destination.bytes);
  if (ip_version != 4) return;
  std::ranges::fill(w.view<4, 12>(), std::byte{0});
  std::ranges::fill(w.view<20, 12>(), std::byte{0});
}

std::optional<CmaHeader> CmReq::cma() const {
  return cma_of(*this);
}

void CmReq::set_private_data(const CmaHeader& cma, std::span<const std::byte> user) {
  put_private_data(*this, cma, user);
}

std::optional<CmaHeader> CmSidrReq::cma() const {
  return cma_of(*this);
}

void CmSidrReq::set_private_data(const CmaHeader& cma, std::span<const std::byte> user) {
  put_private_data(*this, cma, user);
}

const char* name_of(const CmMessage& message) {
  return kNames[message.body.index()];
}

const char* describe(CmDecodeError error) {
  switch (error) {
    case CmDecodeError::None:
      return "a message of the connection manager";
    case CmDecodeError::BadBaseVersion:
      return "MAD base version is not 1";
    case CmDecodeError::NotCm:
      return "not of the connection manager's class";
    case CmDecodeError::BadClassVersion:
      return "class version is not 2";
    case CmDecodeError::BadMethod:
      return "method is not Send";
    case CmDecodeError::UnknownAttribute:
      return "unknown attribute";
  }
  return "?";
}

CmDecodeError check_cm(std::span<const std::byte, CmMessage::kSize> in) {
  const FixedReader<kMadHeaderBytes> header(in.first<kMadHeaderBytes>());
  if (header.u8<0>() != kBaseVersion) return CmDecodeError::BadBaseVersion;
  if (header.u8<1>() != kCmClass) return CmDecodeError::NotCm;
  if (header.u8<2>() != kCmClassVersion) return CmDecodeError::BadClassVersion;
  if (header.u8<3>() != kMethodSend) return CmDecodeError::BadMethod;
  return kind_of(header) < kKinds ? CmDecodeError::None : CmDecodeError::UnknownAttribute;
}

DecodedCm decode_cm(std::span<const std::byte, CmMessage::kSize> in) {
  if (const CmDecodeError error = check_cm(in); error != CmDecodeError::None) return failed(error);
  const FixedReader<kMadHeaderBytes> header(in.first<kMadHeaderBytes>());
  const std::size_t kind = kind_of(header);
  DecodedCm decoded;
  decoded.message.tid = header.u64<8>();
  decoded.message.body =
      read_kind(kind, MadBodyReader(in.subspan<kMadHeaderBytes>()), std::make_index_sequence<kKinds>{});
  const std::uint32_t modifier = header.u32<20>();
  std::visit([modifier](auto& body) { set_ece_options(body, modifier); }, decoded.message.body);
  return decoded;
}

std::array<std::byte, CmMessage::kSize> encode(const CmMessage& message) {
  std::array<std::byte, CmMessage::kSize> out{};
  const std::span<std::byte, CmMessage::kSize> bytes(out);
  FixedWriter<kMadHeaderBytes> header(bytes.first<kMadHeaderBytes>());
  header.u8<0>(kBaseVersion);
  header.u8<1>(kCmClass);
  header.u8<2>(kCmClassVersion);
  header.u8<3>(kMethodSend);
  header.u64<8>(message.tid);
  header.u16<16>(static_cast<std::uint16_t>(kFirstAttribute + message.body.index()));
  header.u32<20>(std::visit([](const auto& alternative) { return ece_options(alternative); }, message.body));
  MadBodyWriter body(bytes.subspan<kMadHeaderBytes>());
  std::visit([&body](const auto& alternative) { write(body, alternative); }, message.body);
  return out;
}

}  // namespace nicless::wire

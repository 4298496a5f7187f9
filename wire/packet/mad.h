// SPDX-License-Identifier: MIT
// The connection manager's messages as values: 256-byte management datagrams of class 7 version 2, sent in UD packets
// from QP 1 to QP 1. decode may fail and says why; encode cannot. IBTA 12.6 (messages), 13.4.3 (the common header).
//
//   CmMessage out{.tid = tid, .body = CmRtu{.local_id = mine, .remote_id = theirs}};
//   post(encode(out));
//   if (const DecodedCm in = decode_cm(bytes)) std::visit(..., in.message.body);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "queue/check.h"
#include "queue/types.h"
#include "wire/packet/endpoint.h"
#include "wire/packet/psn.h"

namespace nicless::wire {

using CommId = queue::StrongId<struct CommIdTag>;                       // names a connection at one end; 0: none
using ServiceId = queue::StrongId<struct ServiceIdTag, std::uint64_t>;  // what a listener listens on

// Private data has a fixed size in each message; what the program gives is padded with zeros, as the kernel does.
template <std::size_t N>
using PrivateData = std::array<std::byte, N>;

// `data` must fit: callers check lengths where they can refuse them.
template <std::size_t N>
PrivateData<N> padded(std::span<const std::byte> data) {
  NICLESS_CHECK(data.size() <= N);
  PrivateData<N> out{};
  std::ranges::copy(data, out.begin());
  return out;
}

// The port spaces of rdma_cm, whose service ids are 00000000 SSSS PPPP (Linux rdma_cma.h).
enum class PortSpace : std::uint16_t { IpoIb = 0x0002, Tcp = 0x0106, Udp = 0x0111, Ib = 0x013f };

constexpr ServiceId service_id(PortSpace space, std::uint16_t port) {
  return ServiceId((std::uint64_t{static_cast<std::uint16_t>(space)} << 16) | port);
}
constexpr std::uint16_t port_of(ServiceId id) {
  return static_cast<std::uint16_t>(id.value() & 0xffff);
}
// Nothing for a service id that no port space made.
std::optional<PortSpace> port_space_of(ServiceId id);

// Who connects to whom, in IP terms: the first 36 bytes of a REQ's or SIDR_REQ's private data. IBTA A11.
//
//   0        1             2..3          4..19            20..35
//   version  IP version    source port   source address   destination address
//
// An IPv4 address stands in the last 4 of its 16 bytes with zeros before it; here it is a Gid like any other.
struct CmaHeader {
  static constexpr std::size_t kSize = 36;
  std::uint8_t ip_version = 4;  // 4 or 6
  std::uint16_t source_port = 0;
  Gid source{};
  Gid destination{};

  static std::optional<CmaHeader> decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const CmaHeader&, const CmaHeader&) = default;
};

// A path as REQ and LAP describe it. On RoCE the LIDs are ffff. IBTA 12.6.5, 12.6.10.
struct CmPath {
  std::uint16_t local_lid = 0;
  std::uint16_t remote_lid = 0;
  Gid local_gid{};
  Gid remote_gid{};
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t packet_rate = 0;  // 6 bits, ibv_rate
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;  // 4 bits
  bool subnet_local = false;
  std::uint8_t ack_timeout = 0;  // 5 bits: 4.096 us * 2^n
  friend bool operator==(const CmPath&, const CmPath&) = default;
};

enum class CmService : std::uint8_t { Rc = 0, Uc = 1, Rd = 2, Extended = 3 };  // REQ: transport service type

// The message that an MRA or a REJ answers.
enum class CmAnswered : std::uint8_t { Req = 0, Rep = 1, Other = 2 };  // Other: LAP in an MRA, no message in a REJ

// Why a connection was refused. IBTA table 108 (12.6.7.2); other numbers travel unchanged.
enum class RejReason : std::uint16_t {
  NoQp = 1,
  NoResources = 3,
  Timeout = 4,
  Unsupported = 5,
  InvalidCommId = 6,
  InvalidCommInstance = 7,
  InvalidServiceId = 8,  // nobody listens
  InvalidTransportType = 9,
  StaleConnection = 10,
  InvalidGid = 12,
  InvalidMtu = 26,
  InsufficientResponderResources = 27,
  ConsumerDefined = 28,  // the program refused
  InvalidRnrRetry = 29,
  DuplicateLocalCommId = 30,
  InvalidClassVersion = 31,
  VendorOptionNotSupported = 35,
};

// SIDR_REP status. IBTA table 120 (12.11.2.1).
enum class SidrStatus : std::uint8_t {
  Valid = 0,
  InvalidServiceId = 1,
  Rejected = 2,
  NoQp = 3,
  Redirect = 4,
  UnsupportedVersion = 5,
};

// Enhanced connection establishment: what the vendor of the adapter has to say to its like. The options travel in the
// common header's attribute modifier. IBTA 12.6.5, 12.6.8.
struct CmEce {
  std::uint32_t vendor_id = 0;  // 24 bits; 0: nothing
  std::uint32_t options = 0;
  friend bool operator==(const CmEce&, const CmEce&) = default;
};

// Request for communication: the active side asks. IBTA 12.6.5.
struct CmReq {
  static constexpr std::uint8_t kXrc = 1;
  static constexpr std::size_t kPrivateBytes = 92;
  static constexpr std::size_t kUserBytes = kPrivateBytes - CmaHeader::kSize;  // what rdma_connect may give

  CommId local_id{};
  ServiceId service{};
  std::uint64_t local_ca_guid = 0;
  std::uint32_t local_qkey = 0;
  queue::Qpn local_qpn{};
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t remote_response_timeout = 20;  // 5 bits: 4.096 us * 2^n
  std::uint8_t local_response_timeout = 20;   // 5 bits
  CmService transport = CmService::Rc;
  bool flow_control = false;
  Psn starting_psn{};
  std::uint8_t retry_count = 0;      // 3 bits
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  std::uint8_t max_cm_retries = 15;  // 4 bits
  std::uint16_t pkey = 0xffff;
  std::uint8_t path_mtu = 0;  // 4 bits, ibv_mtu
  bool rdc_exists = false;
  bool srq = false;
  std::uint8_t extended_transport = 0;  // 3 bits; kXrc, where the transport is Extended
  CmPath primary{};
  CmPath alternate{};
  CmEce ece{};
  PrivateData<kPrivateBytes> private_data{};

  // Nothing when the private data does not begin with such a header (AF_IB, or not from an rdma_cm).
  std::optional<CmaHeader> cma() const;
  std::span<const std::byte> user_data() const { return std::span(private_data).subspan(CmaHeader::kSize); }
  // user: at most kUserBytes.
  void set_private_data(const CmaHeader& cma, std::span<const std::byte> user);
  friend bool operator==(const CmReq&, const CmReq&) = default;
};

// Message receipt acknowledgement: still thinking. IBTA 12.6.6.
struct CmMra {
  static constexpr std::size_t kPrivateBytes = 222;
  CommId local_id{};
  CommId remote_id{};
  CmAnswered answered = CmAnswered::Req;
  std::uint8_t service_timeout = 0;  // 5 bits: 4.096 us * 2^n
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmMra&, const CmMra&) = default;
};

// Reject. IBTA 12.6.7.
struct CmRej {
  static constexpr std::size_t kPrivateBytes = 148;
  static constexpr std::size_t kInfoBytes = 72;
  CommId local_id{};
  CommId remote_id{};
  CmAnswered answered = CmAnswered::Req;
  std::uint8_t info_bytes = 0;  // 7 bits: how much of `info` is meant
  RejReason reason = RejReason::ConsumerDefined;
  std::array<std::byte, kInfoBytes> info{};
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmRej&, const CmRej&) = default;
};

// Reply: the passive side accepts. IBTA 12.6.8.
struct CmRep {
  static constexpr std::size_t kPrivateBytes = 196;
  CommId local_id{};
  CommId remote_id{};
  std::uint32_t local_qkey = 0;
  queue::Qpn local_qpn{};
  std::uint32_t local_eecn = 0;  // 24 bits; an XRC target's number stands here
  Psn starting_psn{};
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t target_ack_delay = 15;  // 5 bits: 4.096 us * 2^n
  std::uint8_t failover_accepted = 0;  // 2 bits
  bool flow_control = false;
  std::uint8_t rnr_retry_count = 0;  // 3 bits: governs the active side's queue pair
  bool srq = false;
  std::uint64_t local_ca_guid = 0;
  CmEce ece{};
  PrivateData<kPrivateBytes> private_data{};

  queue::Qpn queue_pair() const { return local_eecn != 0 ? queue::Qpn(local_eecn) : local_qpn; }
  friend bool operator==(const CmRep&, const CmRep&) = default;
};

// Ready to use: the active side has seen the REP. IBTA 12.6.9.
struct CmRtu {
  static constexpr std::size_t kPrivateBytes = 224;
  CommId local_id{};
  CommId remote_id{};
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmRtu&, const CmRtu&) = default;
};

// Request for communication release. IBTA 12.6.10.
struct CmDreq {
  static constexpr std::size_t kPrivateBytes = 220;
  CommId local_id{};
  CommId remote_id{};
  queue::Qpn remote_qpn{};  // the receiver's
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmDreq&, const CmDreq&) = default;
};

// Reply to it. IBTA 12.6.11.
struct CmDrep {
  static constexpr std::size_t kPrivateBytes = 224;
  CommId local_id{};
  CommId remote_id{};
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmDrep&, const CmDrep&) = default;
};

// Load alternate path. IBTA 12.8.1.
struct CmLap {
  static constexpr std::size_t kPrivateBytes = 168;
  CommId local_id{};
  CommId remote_id{};
  queue::Qpn remote_qpn{};
  std::uint8_t remote_response_timeout = 20;  // 5 bits
  CmPath alternate{};
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmLap&, const CmLap&) = default;
};

// Alternate path response. IBTA 12.8.2.
struct CmApr {
  static constexpr std::size_t kPrivateBytes = 148;
  static constexpr std::size_t kInfoBytes = 72;
  static constexpr std::uint8_t kUnsupported = 2;  // status: alternate paths are not supported here
  CommId local_id{};
  CommId remote_id{};
  std::uint8_t info_bytes = 0;
  std::uint8_t status = 0;
  std::array<std::byte, kInfoBytes> info{};
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmApr&, const CmApr&) = default;
};

// Service id resolution request: how to reach a UD service. IBTA 12.11.1.
struct CmSidrReq {
  static constexpr std::size_t kPrivateBytes = 216;
  static constexpr std::size_t kUserBytes = kPrivateBytes - CmaHeader::kSize;
  std::uint32_t request_id = 0;
  std::uint16_t pkey = 0xffff;
  ServiceId service{};
  PrivateData<kPrivateBytes> private_data{};

  std::optional<CmaHeader> cma() const;
  std::span<const std::byte> user_data() const { return std::span(private_data).subspan(CmaHeader::kSize); }
  void set_private_data(const CmaHeader& cma, std::span<const std::byte> user);
  friend bool operator==(const CmSidrReq&, const CmSidrReq&) = default;
};

// And its reply. IBTA 12.11.2.
struct CmSidrRep {
  static constexpr std::size_t kPrivateBytes = 136;
  static constexpr std::size_t kInfoBytes = 72;
  std::uint32_t request_id = 0;
  SidrStatus status = SidrStatus::Valid;
  std::uint8_t info_bytes = 0;
  queue::Qpn qpn{};
  ServiceId service{};
  std::uint32_t qkey = 0;
  std::array<std::byte, kInfoBytes> info{};
  PrivateData<kPrivateBytes> private_data{};
  friend bool operator==(const CmSidrRep&, const CmSidrRep&) = default;
};

// One MAD of the connection manager. tid: chosen by whoever starts an exchange; REP, RTU, REJ, MRA and DREP repeat the
// one they answer, a DREQ begins its own. The rest of the common header never varies (method Send, status 0).
struct CmMessage {
  static constexpr std::size_t kSize = 256;
  using Body = std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq, CmSidrRep, CmLap, CmApr>;
  std::uint64_t tid = 0;
  Body body{};
  friend bool operator==(const CmMessage&, const CmMessage&) = default;
};

const char* name_of(const CmMessage& message);  // "REQ", "SIDR_REP", ...

enum class CmDecodeError : std::uint8_t {
  None,
  BadBaseVersion,    // the common header is not version 1
  NotCm,             // another management class
  BadClassVersion,   // not version 2
  BadMethod,         // not Send
  UnknownAttribute,  // no such message
};
const char* describe(CmDecodeError error);

struct DecodedCm {
  CmDecodeError error = CmDecodeError::None;
  CmMessage message{};
  explicit operator bool() const { return error == CmDecodeError::None; }
};

// Only the common header: whether a MAD is one of the connection manager's, and if not, why.
CmDecodeError check_cm(std::span<const std::byte, CmMessage::kSize> in);
DecodedCm decode_cm(std::span<const std::byte, CmMessage::kSize> in);
std::array<std::byte, CmMessage::kSize> encode(const CmMessage& message);

}  // namespace nicless::wire

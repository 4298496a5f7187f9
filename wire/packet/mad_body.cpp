// SPDX-License-Identifier: MIT
#include "wire/packet/mad_body.h"

namespace nicless::wire {
namespace {

using Reader = MadBodyReader;
using Writer = MadBodyWriter;

// `value` as a field of `Width` bits whose lowest bit has the weight 1 << Shift in its byte.
template <unsigned Shift, unsigned Width>
constexpr std::uint8_t field(unsigned value) {
  static_assert(Shift + Width <= 8);
  return static_cast<std::uint8_t>((value & ((1u << Width) - 1)) << Shift);
}

template <unsigned Shift, unsigned Width>
constexpr std::uint8_t bits(std::uint8_t byte) {
  static_assert(Shift + Width <= 8);
  return static_cast<std::uint8_t>((byte >> Shift) & ((1u << Width) - 1));
}

constexpr std::uint8_t joined(unsigned a, unsigned b, unsigned c = 0) {
  return static_cast<std::uint8_t>(a | b | c);
}

template <typename Body>
void read_ids(const Reader& r, Body& body) {
  body.local_id = CommId(r.u32<0>());
  body.remote_id = CommId(r.u32<4>());
}

template <typename Body>
void write_ids(Writer& w, const Body& body) {
  w.u32<0>(body.local_id.value());
  w.u32<4>(body.remote_id.value());
}

// The private data of every message is its last part.
template <typename Body>
void read_private(const Reader& r, Body& body) {
  body.private_data = r.array<kMadBodyBytes - Body::kPrivateBytes, Body::kPrivateBytes>();
}

template <typename Body>
void write_private(Writer& w, const Body& body) {
  w.array<kMadBodyBytes - Body::kPrivateBytes>(body.private_data);
}

// A path in a REQ, which holds two of them, 44 bytes each.
template <std::size_t At>
CmPath read_req_path(const Reader& r) {
  CmPath path;
  path.local_lid = r.u16<At>();
  path.remote_lid = r.u16<At + 2>();
  path.local_gid = {r.array<At + 4, 16>()};
  path.remote_gid = {r.array<At + 20, 16>()};
  path.flow_label = r.u32<At + 36>() >> 12;
  path.packet_rate = bits<0, 6>(r.u8<At + 39>());
  path.traffic_class = r.u8<At + 40>();
  path.hop_limit = r.u8<At + 41>();
  path.service_level = bits<4, 4>(r.u8<At + 42>());
  path.subnet_local = bits<3, 1>(r.u8<At + 42>()) != 0;
  path.ack_timeout = bits<3, 5>(r.u8<At + 43>());
  return path;
}

template <std::size_t At>
void write_req_path(Writer& w, const CmPath& path) {
  w.u16<At>(path.local_lid);
  w.u16<At + 2>(path.remote_lid);
  w.array<At + 4>(path.local_gid.bytes);
  w.array<At + 20>(path.remote_gid.bytes);
  w.u32<At + 36>((path.flow_label << 12) | field<0, 6>(path.packet_rate));
  w.u8<At + 40>(path.traffic_class);
  w.u8<At + 41>(path.hop_limit);
  w.u8<At + 42>(joined(field<4, 4>(path.service_level), field<3, 1>(path.subnet_local)));
  w.u8<At + 43>(field<3, 5>(path.ack_timeout));
}

}  // namespace

void read(const Reader& r, CmReq& req) {
  req.local_id = CommId(r.u32<0>());
  req.ece.vendor_id = r.u24<5>();
  req.service = ServiceId(r.u64<8>());
  req.local_ca_guid = r.u64<16>();
  req.local_qkey = r.u32<28>();
  req.local_qpn = queue::Qpn(r.u24<32>());
  req.responder_resources = r.u8<35>();
  req.initiator_depth = r.u8<39>();
  req.remote_response_timeout = bits<3, 5>(r.u8<43>());
  req.transport = static_cast<CmService>(bits<1, 2>(r.u8<43>()));
  req.flow_control = bits<0, 1>(r.u8<43>()) != 0;
  req.starting_psn = Psn(r.u24<44>());
  req.local_response_timeout = bits<3, 5>(r.u8<47>());
  req.retry_count = bits<0, 3>(r.u8<47>());
  req.pkey = r.u16<48>();
  req.path_mtu = bits<4, 4>(r.u8<50>());
  req.rdc_exists = bits<3, 1>(r.u8<50>()) != 0;
  req.rnr_retry_count = bits<0, 3>(r.u8<50>());
  req.max_cm_retries = bits<4, 4>(r.u8<51>());
  req.srq = bits<3, 1>(r.u8<51>()) != 0;
  req.extended_transport = bits<0, 3>(r.u8<51>());
  req.primary = read_req_path<52>(r);
  req.alternate = read_req_path<96>(r);
  read_private(r, req);
}

void write(Writer& w, const CmReq& req) {
  w.u32<0>(req.local_id.value());
  w.u24<5>(req.ece.vendor_id);
  w.u64<8>(req.service.value());
  w.u64<16>(req.local_ca_guid);
  w.u32<28>(req.local_qkey);
  w.u24<32>(req.local_qpn.value());
  w.u8<35>(req.responder_resources);
  w.u8<39>(req.initiator_depth);
  w.u8<43>(joined(field<3, 5>(req.remote_response_timeout), field<1, 2>(static_cast<unsigned>(req.transport)),
                  field<0, 1>(req.flow_control)));
  w.u24<44>(req.starting_psn.value());
  w.u8<47>(joined(field<3, 5>(req.local_response_timeout), field<0, 3>(req.retry_count)));
  w.u16<48>(req.pkey);
  w.u8<50>(joined(field<4, 4>(req.path_mtu), field<3, 1>(req.rdc_exists), field<0, 3>(req.rnr_retry_count)));
  w.u8<51>(joined(field<4, 4>(req.max_cm_retries), field<3, 1>(req.srq), field<0, 3>(req.extended_transport)));
  write_req_path<52>(w, req.primary);
  write_req_path<96>(w, req.alternate);
  write_private(w, req);
}

void read(const Reader& r, CmMra& mra) {
  read_ids(r, mra);
  mra.answered = static_cast<CmAnswered>(bits<6, 2>(r.u8<8>()));
  mra.service_timeout = bits<3, 5>(r.u8<9>());
  read_private(r, mra);
}

void write(Writer& w, const CmMra& mra) {
  write_ids(w, mra);
  w.u8<8>(field<6, 2>(static_cast<unsigned>(mra.answered)));
  w.u8<9>(field<3, 5>(mra.service_timeout));
  write_private(w, mra);
}

void read(const Reader& r, CmRej& rej) {
  read_ids(r, rej);
  rej.answered = static_cast<CmAnswered>(bits<6, 2>(r.u8<8>()));
  rej.info_bytes = bits<1, 7>(r.u8<9>());
  rej.reason = static_cast<RejReason>(r.u16<10>());
  rej.info = r.array<12, CmRej::kInfoBytes>();
  read_private(r, rej);
}

void write(Writer& w, const CmRej& rej) {
  write_ids(w, rej);
  w.u8<8>(field<6, 2>(static_cast<unsigned>(rej.answered)));
  w.u8<9>(field<1, 7>(rej.info_bytes));
  w.u16<10>(static_cast<std::uint16_t>(rej.reason));
  w.array<12>(rej.info);
  write_private(w, rej);
}

void read(const Reader& r, CmRep& rep) {
  read_ids(r, rep);
  rep.local_qkey = r.u32<8>();
  rep.local_qpn = queue::Qpn(r.u24<12>());
  rep.local_eecn = r.u24<16>();
  rep.starting_psn = Psn(r.u24<20>());
  rep.responder_resources = r.u8<24>();
  rep.initiator_depth = r.u8<25>();
  rep.target_ack_delay = bits<3, 5>(r.u8<26>());
  rep.failover_accepted = bits<1, 2>(r.u8<26>());
  rep.flow_control = bits<0, 1>(r.u8<26>()) != 0;
  rep.rnr_retry_count = bits<5, 3>(r.u8<27>());
  rep.srq = bits<4, 1>(r.u8<27>()) != 0;
  rep.local_ca_guid = r.u64<28>();
  rep.ece.vendor_id = std::uint32_t{r.u8<15>()} << 16 | std::uint32_t{r.u8<19>()} << 8 | r.u8<23>();
  read_private(r, rep);
}

void write(Writer& w, const CmRep& rep) {
  write_ids(w, rep);
  w.u32<8>(rep.local_qkey);
  w.u24<12>(rep.local_qpn.value());
  w.u24<16>(rep.local_eecn);
  w.u24<20>(rep.starting_psn.value());
  w.u8<24>(rep.responder_resources);
  w.u8<25>(rep.initiator_depth);
  w.u8<26>(
      joined(field<3, 5>(rep.target_ack_delay), field<1, 2>(rep.failover_accepted), field<0, 1>(rep.flow_control)));
  w.u8<27>(joined(field<5, 3>(rep.rnr_retry_count), field<4, 1>(rep.srq)));
  w.u64<28>(rep.local_ca_guid);
  w.u8<15>(static_cast<std::uint8_t>(rep.ece.vendor_id >> 16));
  w.u8<19>(static_cast<std::uint8_t>(rep.ece.vendor_id >> 8));
  w.u8<23>(static_cast<std::uint8_t>(rep.ece.vendor_id));
  write_private(w, rep);
}

void read(const Reader& r, CmRtu& rtu) {
  read_ids(r, rtu);
  read_private(r, rtu);
}

void write(Writer& w, const CmRtu& rtu) {
  write_ids(w, rtu);
  write_private(w, rtu);
}

void read(const Reader& r, CmDreq& dreq) {
  read_ids(r, dreq);
  dreq.remote_qpn = queue::Qpn(r.u24<8>());
  read_private(r, dreq);
}

void write(Writer& w, const CmDreq& dreq) {
  write_ids(w, dreq);
  w.u24<8>(dreq.remote_qpn.value());
  write_private(w, dreq);
}

void read(const Reader& r, CmDrep& drep) {
  read_ids(r, drep);
  read_private(r, drep);
}

void write(Writer& w, const CmDrep& drep) {
  write_ids(w, drep);
  write_private(w, drep);
}

void read(const Reader& r, CmSidrReq& req) {
  req.request_id = r.u32<0>();
  req.pkey = r.u16<4>();
  req.service = ServiceId(r.u64<8>());
  read_private(r, req);
}

void write(Writer& w, const CmSidrReq& req) {
  w.u32<0>(req.request_id);
  w.u16<4>(req.pkey);
  w.u64<8>(req.service.value());
  write_private(w, req);
}

void read(const Reader& r, CmSidrRep& rep) {
  rep.request_id = r.u32<0>();
  rep.status = static_cast<SidrStatus>(r.u8<4>());
  rep.info_bytes = r.u8<5>();
  rep.qpn = queue::Qpn(r.u24<8>());
  rep.service = ServiceId(r.u64<12>());
  rep.qkey = r.u32<20>();
  rep.info = r.array<24, CmSidrRep::kInfoBytes>();
  read_private(r, rep);
}

void write(Writer& w, const CmSidrRep& rep) {
  w.u32<0>(rep.request_id);
  w.u8<4>(static_cast<std::uint8_t>(rep.status));
  w.u8<5>(rep.info_bytes);
  w.u24<8>(rep.qpn.value());
  w.u64<12>(rep.service.value());
  w.u32<20>(rep.qkey);
  w.array<24>(rep.info);
  write_private(w, rep);
}

// A LAP packs the same path otherwise than a REQ.
void read(const Reader& r, CmLap& lap) {
  read_ids(r, lap);
  lap.remote_qpn = queue::Qpn(r.u24<12>());
  lap.remote_response_timeout = bits<3, 5>(r.u8<15>());
  CmPath& path = lap.alternate;
  path.local_lid = r.u16<20>();
  path.remote_lid = r.u16<22>();
  path.local_gid = {r.array<24, 16>()};
  path.remote_gid = {r.array<40, 16>()};
  path.flow_label = r.u32<56>() >> 12;
  path.traffic_class = r.u8<59>();
  path.hop_limit = r.u8<60>();
  path.packet_rate = bits<0, 6>(r.u8<61>());
  path.service_level = bits<4, 4>(r.u8<62>());
  path.subnet_local = bits<3, 1>(r.u8<62>()) != 0;
  path.ack_timeout = bits<3, 5>(r.u8<63>());
  read_private(r, lap);
}

void write(Writer& w, const CmLap& lap) {
  const CmPath& path = lap.alternate;
  write_ids(w, lap);
  w.u24<12>(lap.remote_qpn.value());
  w.u8<15>(field<3, 5>(lap.remote_response_timeout));
  w.u16<20>(path.local_lid);
  w.u16<22>(path.remote_lid);
  w.array<24>(path.local_gid.bytes);
  w.array<40>(path.remote_gid.bytes);
  w.u32<56>((path.flow_label << 12) | path.traffic_class);
  w.u8<60>(path.hop_limit);
  w.u8<61>(field<0, 6>(path.packet_rate));
  w.u8<62>(joined(field<4, 4>(path.service_level), field<3, 1>(path.subnet_local)));
  w.u8<63>(field<3, 5>(path.ack_timeout));
  write_private(w, lap);
}

void read(const Reader& r, CmApr& apr) {
  read_ids(r, apr);
  apr.info_bytes = r.u8<8>();
  apr.status = r.u8<9>();
  apr.info = r.array<12, CmApr::kInfoBytes>();
  read_private(r, apr);
}

void write(Writer& w, const CmApr& apr) {
  write_ids(w, apr);
  w.u8<8>(apr.info_bytes);
  w.u8<9>(apr.status);
  w.array<12>(apr.info);
  write_private(w, apr);
}

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "cm/messages.h"

#include <algorithm>

namespace nicless::cm {
namespace {

constexpr std::uint8_t kThreeBits = 7;
constexpr std::uint16_t kNoLid = 0xffff;

wire::CmaHeader cma_header(const wire::Endpoint& local, const wire::Endpoint& remote) {
  return {.ip_version = static_cast<std::uint8_t>(remote.address.is_ipv4() ? 4 : 6),
          .source_port = local.port,
          .source = local.address,
          .destination = remote.address};
}

}  // namespace

wire::CmReq build_request(const RequestSpec& spec, std::span<const std::byte> private_data) {
  wire::CmReq req;
  req.service = wire::service_id(spec.space, spec.remote.port);
  req.local_qpn = spec.end.qpn;
  req.responder_resources = spec.end.responder_resources;
  req.initiator_depth = spec.end.initiator_depth;
  req.remote_response_timeout = req.local_response_timeout = kResponseTimeout;
  req.transport = spec.transport;
  req.extended_transport = spec.extended_transport;
  req.flow_control = spec.end.flow_control;
  req.starting_psn = spec.end.starting_psn;
  req.retry_count = std::min(spec.retry_count, kThreeBits);
  req.rnr_retry_count = std::min(spec.end.rnr_retry_count, kThreeBits);
  req.max_cm_retries = kMaxCmRetries;
  req.path_mtu = spec.path_mtu;
  req.ece = spec.end.ece;
  req.srq = spec.end.srq;
  req.primary = {.local_lid = kNoLid,
                 .remote_lid = kNoLid,
                 .local_gid = spec.local.address,
                 .remote_gid = spec.remote.address,
                 .flow_label = spec.flow_label & 0xfffff,
                 .traffic_class = spec.traffic_class,
                 .hop_limit = 64,
                 .ack_timeout = ack_timeout(kTargetAckDelay, spec.packet_lifetime)};
  req.set_private_data(cma_header(spec.local, spec.remote), private_data);
  return req;
}

wire::CmRep build_reply(const EndSpec& end, std::span<const std::byte> private_data) {
  wire::CmRep rep;
  if (end.is_xrc_target) {
    rep.local_eecn = end.qpn.value();
  } else {
    rep.local_qpn = end.qpn;
  }
  rep.starting_psn = end.starting_psn;
  rep.responder_resources = end.responder_resources;
  rep.initiator_depth = end.initiator_depth;
  rep.target_ack_delay = kTargetAckDelay;
  rep.flow_control = end.flow_control;
  rep.ece = end.ece;
  rep.rnr_retry_count = std::min(end.rnr_retry_count, kThreeBits);
  rep.srq = end.srq || end.is_xrc_target;
  rep.private_data = wire::padded<wire::CmRep::kPrivateBytes>(private_data);
  return rep;
}

wire::CmSidrReq build_sidr_request(wire::PortSpace space, const wire::Endpoint& local, const wire::Endpoint& remote,
                                   std::span<const std::byte> private_data) {
  wire::CmSidrReq request;
  request.service = wire::service_id(space, remote.port);
  request.set_private_data(cma_header(local, remote), private_data);
  return request;
}

wire::CmSidrRep build_sidr_reply(queue::Qpn qpn, std::uint32_t qkey, std::span<const std::byte> private_data) {
  return {.qpn = qpn, .qkey = qkey, .private_data = wire::padded<wire::CmSidrRep::kPrivateBytes>(private_data)};
}

wire::CmSidrRep build_sidr_refusal(std::span<const std::byte> private_data) {
  return {.status = wire::SidrStatus::Rejected,
          .private_data = wire::padded<wire::CmSidrRep::kPrivateBytes>(private_data)};
}

}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
// Messages as the Linux kernel's rdma_cm fills them, REQ and REP above all (IBTA 12.6.5, 12.6.8): what the program and
// the route say goes in, and what is the same every time stands here. Pure values; the ids come from the Connection.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cm/timeouts.h"
#include "wire/packet/endpoint.h"
#include "wire/packet/mad.h"

namespace nicless::cm {

// What both messages say of the end that sends them.
struct EndSpec {
  queue::Qpn qpn{};
  wire::Psn starting_psn{};
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t rnr_retry_count = 7;  // above 7 is 7
  bool flow_control = false;
  bool srq = false;
  bool is_xrc_target = false;
  wire::CmEce ece{};
};

struct RequestSpec {
  wire::PortSpace space = wire::PortSpace::Tcp;
  wire::CmService transport = wire::CmService::Rc;
  std::uint8_t extended_transport = 0;
  wire::Endpoint local{};   // this end, as rdma_get_src_port shows it
  wire::Endpoint remote{};  // the service
  EndSpec end{};
  std::uint8_t retry_count = 7;
  std::uint8_t path_mtu = 0;  // ibv_mtu
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t packet_lifetime = kPacketLifetime;
};

// private_data: at most CmReq::kUserBytes.
wire::CmReq build_request(const RequestSpec& spec, std::span<const std::byte> private_data);
// private_data: at most CmRep::kPrivateBytes.
wire::CmRep build_reply(const EndSpec& end, std::span<const std::byte> private_data);

// SIDR_REQ and SIDR_REP, IBTA 12.11. The request id is the asker's; local and remote as in RequestSpec.
// private_data: at most CmSidrReq::kUserBytes, CmSidrRep::kPrivateBytes.
wire::CmSidrReq build_sidr_request(wire::PortSpace space, const wire::Endpoint& local, const wire::Endpoint& remote,
                                   std::span<const std::byte> private_data);
wire::CmSidrRep build_sidr_reply(queue::Qpn qpn, std::uint32_t qkey, std::span<const std::byte> private_data);
wire::CmSidrRep build_sidr_refusal(std::span<const std::byte> private_data);  // of the program's

}  // namespace nicless::cm

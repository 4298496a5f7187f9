// SPDX-License-Identifier: MIT
// What a program has to wish for, and who it has to be, so that it says what the kernel's end said in a capture.
#pragma once

#include <cstdint>

#include "cm/connection.h"
#include "cm/messages.h"

namespace nicless::cm::test {

inline constexpr std::uint8_t kLifetimeThen = 18;  // of the kernel that was captured

// As the kernel makes a transaction id from its own id.
inline Identity identity_of(CommId id, std::uint64_t tid_high, std::uint64_t guid) {
  return {id, (tid_high & 0xffffffff00000000) | __builtin_bswap32(id.value()), guid};
}

template <typename Message>
EndSpec end_of(const Message& message) {
  return {.qpn = message.local_qpn,
          .starting_psn = message.starting_psn,
          .responder_resources = message.responder_resources,
          .initiator_depth = message.initiator_depth,
          .rnr_retry_count = message.rnr_retry_count,
          .flow_control = message.flow_control,
          .srq = message.srq};
}

// The request as a program's wishes and a route would make it.
inline wire::CmReq rebuild(const wire::CmReq& captured, std::uint8_t lifetime = kLifetimeThen) {
  const wire::CmaHeader cma = captured.cma().value();
  const RequestSpec spec{.space = wire::port_space_of(captured.service).value(),
                         .local = {cma.source, cma.source_port},
                         .remote = {cma.destination, wire::port_of(captured.service)},
                         .end = end_of(captured),
                         .retry_count = captured.retry_count,
                         .path_mtu = captured.path_mtu,
                         .traffic_class = captured.primary.traffic_class,
                         .flow_label = captured.primary.flow_label,
                         .packet_lifetime = lifetime};
  return build_request(spec, captured.user_data());
}

}  // namespace nicless::cm::test

// SPDX-License-Identifier: MIT
#include "cm/answers.h"

namespace nicless::cm {
namespace {

// The receiver's id in a message, or nothing for those that do not carry one.
template <typename Body>
std::optional<CommId> receiver_of(const Body& body) {
  if constexpr (requires { body.remote_id; }) return body.remote_id;
  return std::nullopt;
}

}  // namespace

ConnectionEntry* find_addressee(ConnectionTable& connections, const wire::Gid& from, const wire::CmMessage& message) {
  if (const auto* req = std::get_if<wire::CmReq>(&message.body)) return connections.find_by_peer(from, req->local_id);
  const auto receiver = std::visit([](const auto& body) { return receiver_of(body); }, message.body);
  if (!receiver) return nullptr;
  // Whoever gives up before an answer does not know this end's id. IBTA 12.9.8.
  const auto* rej = std::get_if<wire::CmRej>(&message.body);
  if (rej != nullptr && receiver->value() == 0) return connections.find_by_peer(from, rej->local_id);
  // Alternate paths are not supported: the same answer with and without a connection.
  if (std::holds_alternative<wire::CmLap>(message.body)) return nullptr;
  ConnectionEntry* entry = connections.find(*receiver);
  return entry != nullptr && entry->path.remote.address == from ? entry : nullptr;
}

std::optional<wire::RejReason> refuses(const wire::CmReq& request) {
  if (!request.cma()) return wire::RejReason::Unsupported;  // who asks? not an rdma_cm
  return std::nullopt;
}

}  // namespace nicless::cm

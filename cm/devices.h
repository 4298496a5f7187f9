// SPDX-License-Identifier: MIT
// The RDMA devices as the connection manager uses them: each opened once and kept while the process lives, with the
// default protection domain that rdma_create_qp(3) promises. Called with the agent's lock held.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "queue/result.h"
#include "wire/packet/endpoint.h"

namespace nicless::cm {

using queue::Result;

struct Device {
  ibv_context* verbs = nullptr;
  ibv_pd* pd = nullptr;
  ibv_xrcd* xrcd = nullptr;  // once somebody wants XRC
  std::uint64_t ca_guid = 0;
  std::uint8_t max_initiator_depth = 0;
  std::uint8_t max_responder_resources = 0;
  std::uint8_t ports = 0;
};

// Where a GID stands: what an address handle and a queue pair's path need.
struct GidPlace {
  Device* device = nullptr;
  std::uint8_t port = 0;
  std::uint8_t index = 0;
  ibv_mtu active_mtu = IBV_MTU_1024;
};

class Devices {
 public:
  // ENODEV when there is none.
  Result<const std::vector<std::unique_ptr<Device>>*> all();
  // The first device that has this address; ENODEV when none has.
  Result<GidPlace> find(const wire::Gid& gid);
  // Whether a device has an address of 127.0.0.0/8, or ::1.
  bool have_loopback();
  // The first address of that kind that a device has, if any.
  std::optional<wire::Gid> first_address(bool is_ipv4);

 private:
  // Calls visit(place, GID) for each entry of the tables, until it returns true.
  template <typename F>
  void visit_gids(F&& visit);
  Result<void> open(ibv_device* device);

  std::vector<std::unique_ptr<Device>> devices_;
};

}  // namespace nicless::cm

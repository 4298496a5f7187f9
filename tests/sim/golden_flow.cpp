// SPDX-License-Identifier: MIT
#include "tests/sim/golden_flow.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "tests/support/golden.h"
#include "wire/addressing.h"

namespace nicless::sim {

namespace {

const wire::OpcodeInfo& info_of(const Packet& packet) {
  return *wire::find_opcode(packet.headers.bth.opcode);
}

bool is_response(const Packet& packet) {
  return info_of(packet).has_aeth || info_of(packet).family == wire::Family::ReadResponse;
}

std::string text(const char* pattern, unsigned long long value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, pattern, value);
  return buffer;
}

// PSNs of the requests to each queue pair, and of the responses: a response belongs to the request with its number.
using Psns = std::map<std::uint32_t, std::set<std::uint32_t>>;

std::size_t in_common(const std::set<std::uint32_t>& a, const std::set<std::uint32_t>& b) {
  return static_cast<std::size_t>(
      std::count_if(a.begin(), a.end(), [&](std::uint32_t psn) { return b.contains(psn); }));
}

std::uint32_t peer_of(const std::set<std::uint32_t>& requests, const Psns& responses) {
  std::uint32_t best = 0;
  std::size_t most = 0;
  for (const auto& [qpn, psns] : responses) {
    if (const std::size_t count = in_common(psns, requests); count > most) {
      most = count;
      best = qpn;
    }
  }
  return best;
}

}  // namespace

std::uint32_t GoldenFlow::first_psn() const {
  std::int64_t first = 0;
  std::int64_t reference = -1;
  for (const Event& event : events) {
    if (event.is_response) continue;
    const wire::Psn psn = event.packet.headers.bth.psn;
    if (reference < 0) reference = first = (std::int64_t{1} << 24) + psn.value();
    first = std::min(first, wire::unwrap(reference, psn));
  }
  return wire::Psn::of(static_cast<std::uint64_t>(first)).value();
}

std::vector<std::string> GoldenFlow::requests() const {
  std::vector<std::string> lines;
  for (const Event& event : events) {
    if (!event.is_response) lines.push_back(to_line(event.packet));
  }
  return lines;
}

std::vector<std::string> GoldenFlow::responses() const {
  std::vector<std::string> lines;
  for (const Event& event : events) {
    if (event.is_response) lines.push_back(to_line(event.packet));
  }
  return lines;
}

std::vector<GoldenFlow> golden_flows(const std::string& file) {
  std::vector<Packet> packets;
  Psns requests, responses;
  std::map<std::uint32_t, wire::Service> services;
  for (const test::GoldenPacket& golden : test::golden_packets(file)) {
    const wire::Decoded decoded = wire::decode(golden.bytes);
    if (!decoded) throw Failure(golden.where + " does not decode");
    const auto payload = decoded.packet.payload;
    const Packet packet{decoded.packet.headers, {payload.begin(), payload.end()}};
    const wire::Service service = info_of(packet).service;
    const std::uint32_t to = packet.headers.bth.dest_qp.value();
    if (to == wire::kGsiQpn.value()) continue;
    packets.push_back(packet);
    (is_response(packet) ? responses : requests)[to].insert(packet.headers.bth.psn.value());
    services[to] = service;
  }
  std::vector<GoldenFlow> flows;
  for (const auto& [qpn, psns] : requests) {
    const std::uint32_t peer = peer_of(psns, responses);
    GoldenFlow flow{file + text(", requests to qp %06llx", qpn), services[qpn], 1024, {}};
    for (const Packet& packet : packets) {
      const bool is_answer = is_response(packet);
      if (packet.headers.bth.dest_qp.value() == (is_answer ? peer : qpn)) flow.events.push_back({is_answer, packet});
      const auto place = info_of(packet).place;
      if (place == wire::Place::First) flow.path_mtu = static_cast<std::uint16_t>(packet.payload.size());
    }
    flows.push_back(std::move(flow));
  }
  return flows;
}

std::string to_line(const Packet& packet) {
  const wire::OpcodeInfo& info = info_of(packet);
  const wire::Headers& headers = packet.headers;
  std::string line = info.name + text(" psn=%06llx", headers.bth.psn.value());
  if (headers.bth.ack_req) line += " ack_req";
  if (headers.bth.solicited) line += " solicited";
  if (info.has_aeth) line += text(" syndrome=%02llx", headers.aeth.syndrome) + text(" msn=%llu", headers.aeth.msn);
  if (info.has_atomic_ack) line += text(" original=%llx", headers.atomic_ack.original);
  if (info.has_reth) line += text(" va=%llx", headers.reth.address) + text(" length=%llu", headers.reth.length);
  if (info.has_atomic) {
    line += text(" va=%llx", headers.atomic.address) + text(" swap_add=%llx", headers.atomic.swap_add) +
            text(" compare=%llx", headers.atomic.compare);
  }
  if (info.has_deth) line += text(" qkey=%llx", headers.deth.qkey);
  if (info.has_imm) line += text(" imm=%llx", headers.imm.network_order);
  if (info.has_payload) line += text(" bytes=%llu", packet.payload.size());
  return line;
}

std::vector<std::string> difference(const std::vector<std::string>& kernel, const std::vector<std::string>& ours) {
  const std::size_t n = kernel.size();
  const std::size_t m = ours.size();
  std::vector<std::vector<std::size_t>> common(n + 1, std::vector<std::size_t>(m + 1, 0));
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) {
      common[i][j] = kernel[i] == ours[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  std::vector<std::string> lines;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && kernel[i] == ours[j]) {
      ++i;
      ++j;
    } else if (j == m || (i < n && common[i + 1][j] >= common[i][j + 1])) {
      lines.push_back("- " + kernel[i++]);
    } else {
      lines.push_back("+ " + ours[j++]);
    }
  }
  return lines;
}

}  // namespace nicless::sim

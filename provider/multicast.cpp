// SPDX-License-Identifier: MIT
// ibv_attach_mcast(3), ibv_detach_mcast(3): a queue pair's port hears the IP groups that stand for a multicast GID.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "provider/objects.h"
#include "provider/qp.h"
#include "wire/multicast.h"
#include "wire/packet/raw_gid.h"

namespace nicless::provider {
namespace {

std::vector<unsigned> interfaces_of(const Device& device) {
  std::vector<unsigned> interfaces;
  for (const GidEntry& entry : device.gids) interfaces.push_back(entry.interface_index);
  std::sort(interfaces.begin(), interfaces.end());
  interfaces.erase(std::unique(interfaces.begin(), interfaces.end()), interfaces.end());
  return interfaces;
}

std::vector<wire::Gid> addresses_of(const Device& device) {
  std::vector<wire::Gid> addresses;
  for (const GidEntry& entry : device.gids) addresses.push_back(entry.gid);
  return addresses;
}

// The IPv4 group is always one of them: the sender's own address decides which it takes (path.cpp).
std::vector<wire::Gid> groups_of(const wire::Gid& gid) {
  std::vector<wire::Gid> groups{wire::ipv4_group(gid)};
  if (const auto group = wire::ipv6_group(gid)) groups.push_back(*group);
  return groups;
}

// A group that nobody on the port is in yet is joined, and its sockets are waited for.
Result<void> open_group(Qp& qp, wire::UdpPort& port, const wire::Gid& group) REQUIRES(port.mutex) {
  const auto fds = port.join(group, interfaces_of(device_of(qp.verbs.qp_base.context)));
  if (!fds) return fds.error();
  for (const int fd : *fds) {
    if (auto watched = qp.context->runtime.progress().watch_also(qp.seat.port, fd); !watched) {
      for (const int watched_fd : *fds) qp.context->runtime.progress().unwatch(watched_fd);
      port.leave(group);
      return watched;
    }
  }
  return {};
}

Result<void> enter_group(Qp& qp, wire::UdpPort& port, const wire::Gid& group) REQUIRES(port.mutex) {
  wire::MulticastTable& table = port.engine().multicast();
  if (!table.has(group)) {
    if (auto opened = open_group(qp, port, group); !opened) return opened;
  }
  wire::MulticastMember member{qp.seat.qpn, {}};
  if (!qp.hears_itself) member.own_addresses = addresses_of(device_of(qp.verbs.qp_base.context));
  table.attach(group, member);
  return {};
}

void leave_group(Qp& qp, wire::UdpPort& port, const wire::Gid& group) REQUIRES(port.mutex) {
  port.engine().multicast().detach(group, qp.seat.qpn);
  if (port.engine().multicast().has(group)) return;
  for (const int fd : port.group_descriptors(group)) qp.context->runtime.progress().unwatch(fd);
  port.leave(group);
}

auto find_attachment(Qp& qp, const wire::Gid& gid) {
  return std::find_if(qp.attachments.begin(), qp.attachments.end(),
                      [&](const MulticastAttachment& attachment) { return attachment.gid == gid; });
}

}  // namespace

// The LID is InfiniBand's; RoCE has none, and Linux does not look at it either.
Result<void> attach_mcast(ibv_qp* verbs, const ibv_gid* verbs_gid) {
  Qp& qp = qp_of(verbs);
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  const wire::Gid gid = wire::from_raw(verbs_gid->raw);
  if (verbs->qp_type != IBV_QPT_UD)
    return queue::error(EINVAL, "only queue pairs of type UD can be in multicast groups");
  if (!wire::is_multicast(gid)) {
    return queue::error(EINVAL, to_string(gid) +
                                    " is no multicast GID; those begin with ff, or are ::ffff:224.0.0.0 to "
                                    "::ffff:239.255.255.255");
  }
  wire::UdpPort& port = *qp.seat.port;
  queue::MutexLock lock(port.mutex);
  if (find_attachment(qp, gid) != qp.attachments.end()) return {};  // as Linux: once is enough
  MulticastAttachment attachment{gid, {}};
  Result<void> entered;
  for (const wire::Gid& group : groups_of(gid)) {
    auto one = enter_group(qp, port, group);
    if (one) attachment.groups.push_back(group);
    if (!one && entered) entered = one;
  }
  if (attachment.groups.empty()) return entered;
  qp.attachments.push_back(std::move(attachment));
  return {};
}

Result<void> detach_mcast(ibv_qp* verbs, const ibv_gid* verbs_gid) {
  Qp& qp = qp_of(verbs);
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  const wire::Gid gid = wire::from_raw(verbs_gid->raw);
  wire::UdpPort& port = *qp.seat.port;
  queue::MutexLock lock(port.mutex);
  const auto attachment = find_attachment(qp, gid);
  if (attachment == qp.attachments.end()) {
    return queue::error(EINVAL, "the queue pair is not attached to " + to_string(gid));
  }
  for (const wire::Gid& group : attachment->groups) leave_group(qp, port, group);
  qp.attachments.erase(attachment);
  return {};
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
#include "wire/io/send_batch.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "wire/io/control_message.h"
#include "wire/io/raw_syscalls.h"
#include "wire/io/udp_options.h"
#include "wire/multicast.h"
#include "wire/packet/icrc.h"

namespace nicless::wire {

namespace {

constexpr std::size_t kVectorsPerMessageMax = 1024;  // UIO_MAXIOV
constexpr std::size_t kVectorsPerDatagramMax = kPayloadSpansMax + 2;
// One segmented datagram must fit the length field of an IP packet, headers included.
constexpr std::size_t kGroupBytesMax = 65000;
// A socket reports a pending ICMP error instead of sending; the next attempt sends. More errors than this in a row mean
// something else.
constexpr int kAttemptsMax = 4;

iovec vector_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // sendmsg only reads
}

// Where `head`, the payload and the trailer of a datagram lie; how many pieces that is.
std::size_t lay_out(std::span<const std::byte> head, const OutDatagram& datagram, iovec* vectors) {
  std::size_t count = 0;
  vectors[count++] = vector_of(head);
  for (std::size_t s = 0; s < datagram.span_count; ++s) vectors[count++] = vector_of(datagram.spans[s]);
  vectors[count++] = vector_of(datagram.trailer_view());
  return count;
}

// What sendmsg reports for an ICMP error about an earlier datagram, which has nothing to do with this one.
bool is_pending_error(int errno_value) {
  return errno_value == ECONNREFUSED || errno_value == EHOSTUNREACH || errno_value == EPROTO ||
         errno_value == ENOPROTOOPT || errno_value == EMSGSIZE;
}

// Destination, source address and IP options of a message; the writer returned may append more.
ControlWriter address(const OutDatagram& datagram, int family, SocketAddress& name, std::span<char> control_bytes,
                      msghdr& message) {
  constexpr IpOptions kDefault;
  // Where routes do not say it: the interface of the address that it is sent from.
  const bool is_of_interface = is_link_local(datagram.to.address) || is_multicast(datagram.to.address);
  const unsigned interface = is_of_interface ? interface_of(datagram.from.address) : 0;
  message.msg_name = &name;
  message.msg_namelen = to_socket_address(datagram.to, family, interface, name);
  message.msg_control = control_bytes.data();
  ControlWriter control(message);
  const bool is_ipv4 = family == AF_INET || datagram.to.address.is_ipv4();
  if (!is_unspecified(datagram.from.address)) {
    if (is_ipv4) {
      in_pktinfo info{};
      info.ipi_spec_dst = ipv4_of(datagram.from.address);
      info.ipi_ifindex = static_cast<int>(interface);
      control.append(IPPROTO_IP, IP_PKTINFO, info);
    } else {
      in6_pktinfo info{};
      info.ipi6_addr = ipv6_of(datagram.from.address);
      info.ipi6_ifindex = interface;
      control.append(IPPROTO_IPV6, IPV6_PKTINFO, info);
    }
  }
  if (datagram.ip.traffic_class != kDefault.traffic_class) {
    const int value = datagram.ip.traffic_class;
    is_ipv4 ? control.append(IPPROTO_IP, IP_TOS, value) : control.append(IPPROTO_IPV6, IPV6_TCLASS, value);
  }
  if (datagram.ip.hop_limit != kDefault.hop_limit && datagram.ip.hop_limit != 0) {
    const int value = datagram.ip.hop_limit;
    is_ipv4 ? control.append(IPPROTO_IP, IP_TTL, value) : control.append(IPPROTO_IPV6, IPV6_HOPLIMIT, value);
  }
  return control;
}

}  // namespace

SendBatch::SendBatch()
    : datagrams_(kDatagramsMax),
      messages_(kDatagramsMax),
      vectors_(kDatagramsMax * kVectorsPerDatagramMax),
      seams_(kDatagramsMax),
      names_(kDatagramsMax),
      controls_(kDatagramsMax) {
  groups_.reserve(kDatagramsMax);
}

// One pass, so that each datagram is read while it is in the cache. The kernel numbers the segments of one message from
// 0 in the IPv4 identification, which the ICRC covers.
void SendBatch::send(const Outlet& outlet, queue::Instant now, Trace* trace) {
  groups_.clear();
  for (std::size_t i = 0; i < count_; ++i) {
    const bool may_join = !groups_.empty() && outlet.own.can_segment();
    const bool joins_last = may_join && joins(groups_.back(), datagrams_[i]);
    if (!joins_last) open_group(i);
    seal(datagrams_[i], static_cast<std::uint16_t>(groups_.back().count));
    append(i);
  }
  submit_all(outlet, now, trace);
}

void SendBatch::send_sealed(const Outlet& outlet, queue::Instant now, Trace* trace) {
  groups_.clear();
  for (std::size_t i = 0; i < count_; ++i) {
    open_group(i);
    append(i);
  }
  submit_all(outlet, now, trace);
}

void SendBatch::submit_all(const Outlet& outlet, queue::Instant now, Trace* trace) {
  for (std::size_t g = 0; g < groups_.size(); ++g) write_message(outlet.own, groups_[g], g);
  submit(outlet);
  if (trace != nullptr) {
    for (std::size_t i = 0; i < count_; ++i) trace->on_sent(now, datagrams_[i]);
  }
  count_ = 0;
}

std::optional<Refusal> SendBatch::take_refusal() {
  return std::exchange(refusal_, std::nullopt);
}

bool SendBatch::take_error_hint() {
  return std::exchange(has_error_hint_, false);
}

void SendBatch::open_group(std::size_t index) {
  const std::size_t first_vector = groups_.empty() ? 0 : groups_.back().first_vector + groups_.back().vectors;
  groups_.push_back({index, 0, first_vector, 0});
}

// All segments have one size; only the last may be shorter, so nothing follows a shorter one.
bool SendBatch::joins(const Group& group, const OutDatagram& next) const {
  const OutDatagram& first = datagrams_[group.first];
  const OutDatagram& last = datagrams_[group.first + group.count - 1];
  return last.size() == first.size() && next.size() <= first.size() && next.to == first.to && next.from == first.from &&
         next.ip == first.ip && (group.count + 1) * first.size() <= kGroupBytesMax &&
         group.vectors + next.span_count + 1 <= kVectorsPerMessageMax;
}

// A sealed datagram goes to the end of the last group.
void SendBatch::append(std::size_t index) {
  const OutDatagram& datagram = datagrams_[index];
  Group& group = groups_.back();
  const std::span<const std::byte> head = group.count == 0 ? datagram.header_view() : join(index);
  group.vectors += lay_out(head, datagram, &vectors_[group.first_vector + group.vectors]);
  ++group.count;
}

// Takes the last trailer of the group out of the vectors, and answers with what stands in its place.
std::span<const std::byte> SendBatch::join(std::size_t index) {
  --groups_.back().vectors;
  Seam& seam = seams_[index];
  std::ranges::copy(datagrams_[index].header, seam.bytes.begin() + Seam::kHeaderAt);
  const std::span<const std::byte> trailer = datagrams_[index - 1].trailer_view();
  const std::size_t start = Seam::kHeaderAt - trailer.size();
  std::ranges::copy(trailer, seam.bytes.begin() + static_cast<std::ptrdiff_t>(start));
  return std::span(seam.bytes).subspan(start, trailer.size() + datagrams_[index].header_bytes);
}

void SendBatch::write_message(const UdpSocket& socket, const Group& group, std::size_t index) {
  const OutDatagram& first = datagrams_[group.first];
  msghdr& message = messages_[index].msg_hdr;
  message.msg_iov = &vectors_[group.first_vector];
  message.msg_iovlen = group.vectors;
  ControlWriter control = address(first, socket.family(), names_[index], controls_[index].bytes, message);
  if (group.count > 1) control.append(IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(first.size()));
}

void SendBatch::submit(const Outlet& outlet) {
  for (std::size_t first = 0; first < groups_.size();) {
    const std::size_t end = end_of_run(first, outlet);
    const std::uint16_t port = datagrams_[groups_[first].first].from.port;
    submit(first, end, outlet.sources == nullptr ? outlet.own : outlet.sources->find(port, outlet.own));
    first = end;
  }
}

// The groups from `first` on that leave by the same socket.
std::size_t SendBatch::end_of_run(std::size_t first, const Outlet& outlet) const {
  if (outlet.sources == nullptr) return groups_.size();
  const std::uint16_t port = datagrams_[groups_[first].first].from.port;
  std::size_t end = first + 1;
  while (end < groups_.size() && datagrams_[groups_[end].first].from.port == port) ++end;
  return end;
}

void SendBatch::submit(std::size_t first, std::size_t end, UdpSocket& socket) {
  std::size_t sent = first;
  int attempts = 0;
  while (sent < end) {
    const int done = raw::sendmmsg(socket.fd(), &messages_[sent], static_cast<unsigned>(end - sent));
    if (done > 0) {
      sent += static_cast<std::size_t>(done);
      attempts = 0;
      continue;
    }
    const int failure = done < 0 ? -done : EAGAIN;
    if (failure == EINTR) continue;
    if (is_pending_error(failure) && ++attempts < kAttemptsMax) {
      has_error_hint_ = true;
      continue;
    }
    if (groups_[sent].count > 1 && (failure == EIO || failure == EINVAL)) {
      // EIO: this way out cannot segment, nor will it next time. EINVAL: the segments do not fit this route's MTU, or
      // the kernel takes fewer of them.
      if (failure == EIO) socket.stop_segmenting();
      send_singly(socket, groups_[sent]);
    } else {
      refuse(groups_[sent], failure);
    }
    ++sent;
    attempts = 0;
  }
}

void SendBatch::send_singly(UdpSocket& socket, const Group& group) {
  std::array<iovec, kVectorsPerDatagramMax> vectors;
  for (std::size_t i = group.first; i < group.first + group.count; ++i) {
    OutDatagram& datagram = datagrams_[i];
    seal(datagram, 0);
    SocketAddress name;
    Control control;
    mmsghdr single{};
    address(datagram, socket.family(), name, control.bytes, single.msg_hdr);
    single.msg_hdr.msg_iov = vectors.data();
    single.msg_hdr.msg_iovlen = lay_out(datagram.header_view(), datagram, vectors.data());
    const int sent = raw::sendmmsg(socket.fd(), &single, 1);
    if (sent < 0) refuse({i, 1, 0, 0}, -sent);
  }
}

void SendBatch::refuse(const Group& group, int errno_value) {
  const OutDatagram& first = datagrams_[group.first];
  refusal_ = Refusal{errno_value, first.to, first.size()};
}

}  // namespace nicless::wire

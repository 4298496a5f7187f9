// SPDX-License-Identifier: MIT
#include "provider/private.h"

#include <cerrno>
#include <cstring>
#include <new>

#include "provider/errno_shapes.h"
#include "provider/hw_counters.h"
#include "provider/process.h"
#include "provider/rocev2.h"
#include "provider/runtime.h"
#include "wire/io/clock.h"
#include "wire/packet/raw_gid.h"

using nicless::provider::CmDesk;
using nicless::provider::guard;
using nicless::provider::is_rocev2;
using nicless::provider::Result;
using nicless::provider::Runtime;
using nicless::provider::watch_forks;

namespace {

namespace queue = nicless::queue;
namespace wire = nicless::wire;

// The errno value itself, without a sentence: librdmacm.so.1 says its own.
template <typename F>
int value_of(F&& f) noexcept {
  const auto result = guard(std::forward<F>(f));
  return result ? 0 : result.error().errno_value;
}

wire::SocketConfig config_of(const sockaddr& address, int flags) {
  wire::SocketConfig config;
  std::memcpy(&config.address, &address, address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  config.v6_only = (flags & NICLESS_GSI_V6ONLY) != 0;
  return config;
}

Result<void> open_gsi(const wire::SocketConfig& config, nicless_gsi** gsi, std::uint16_t* port) {
  auto runtime = Runtime::current();
  if (!runtime) return runtime.error();
  auto opened = (*runtime)->open_port(config);
  if (!opened) return opened.error();
  *gsi = (*runtime)->cm_desk().add(*opened);
  *port = (*opened)->udp_port();
  return {};
}

// The address is one of this machine's: EADDRNOTAVAIL if not.
Result<void> check_is_here(wire::SocketConfig config) {
  if (config.address.any.sa_family == AF_INET) {
    config.address.v4.sin_port = 0;
  } else {
    config.address.v6.sin6_port = 0;
  }
  const auto bound = wire::UdpSocket::open(config);
  if (!bound) return bound.error();
  return {};
}

// Opened at the first call; a forked child opens its own.
struct SharedGsi {
  queue::Mutex mutex;
  std::uint64_t generation GUARDED_BY(mutex) = 0;
  nicless_gsi* gsi GUARDED_BY(mutex) = nullptr;
  std::uint16_t port GUARDED_BY(mutex) = 0;
};
SharedGsi& shared_gsi() {
  static SharedGsi& made = *new SharedGsi;
  return made;
}

// Another thread of the parent's may have held it; the endpoint itself is told apart by its generation.
void forget_shared_lock() {
  new (&shared_gsi().mutex) queue::Mutex;
}

}  // namespace

extern "C" {

int nicless_cm_register(const nicless_cm_agent* calls, void* agent) {
  return value_of([&]() -> Result<void> {
    auto runtime = Runtime::current();
    if (!runtime) return runtime.error();
    (*runtime)->cm_desk().set_agent(*calls, agent);
    (*runtime)->progress().wake();
    return {};
  });
}

void nicless_cm_deadline_changed(void) {
  value_of([]() -> Result<void> {
    auto runtime = Runtime::current();
    if (!runtime) return runtime.error();
    if (!(*runtime)->progress().is_this_thread()) (*runtime)->progress().wake();
    return {};
  });
}

int nicless_gsi_open(const sockaddr* address, int flags, nicless_gsi** gsi, uint16_t* port) {
  return value_of([&]() -> Result<void> {
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) {
      return queue::error(EAFNOSUPPORT, "neither an IPv4 nor an IPv6 address");
    }
    const wire::SocketConfig config = config_of(*address, flags);
    if (!is_rocev2()) return open_gsi(config, gsi, port);
    if (auto here = check_is_here(config); !here) return here;
    auto opened = open_gsi(config, gsi, port);
    *port = wire::endpoint_of(config.address).port;
    return opened;
  });
}

int nicless_gsi_shared(nicless_gsi** gsi, uint16_t* port) {
  return value_of([&]() -> Result<void> {
    SharedGsi& shared = shared_gsi();
    watch_forks(forget_shared_lock);
    queue::MutexLock lock(shared.mutex);
    if (shared.gsi == nullptr || shared.generation != nicless_process_generation()) {
      auto opened = open_gsi(wire::any_address(), &shared.gsi, &shared.port);
      if (!opened) return opened;
      shared.generation = nicless_process_generation();
    }
    *gsi = shared.gsi;
    *port = shared.port;
    return {};
  });
}

void nicless_gsi_close(nicless_gsi* gsi) {
  value_of([&]() -> Result<void> {
    auto runtime = Runtime::current();
    if (!runtime) return runtime.error();
    if (is_rocev2()) return {};
    const bool is_progress_thread = (*runtime)->progress().is_this_thread();
    if (const auto port = (*runtime)->cm_desk().remove(gsi, is_progress_thread)) (*runtime)->close_port(port);
    return {};
  });
}

int nicless_gsi_send(nicless_gsi* gsi, const uint8_t local[16], const nicless_endpoint* remote, uint8_t traffic_class,
                     const uint8_t mad[NICLESS_MAD_BYTES]) {
  return value_of([&]() -> Result<void> {
    wire::Mad out;
    out.from = {wire::from_raw(local), gsi->port->udp_port()};
    out.to = {wire::from_raw(remote->address), remote->port};
    out.ip.traffic_class = traffic_class;
    std::memcpy(out.bytes.data(), mad, out.bytes.size());
    auto runtime = Runtime::current();
    if (!runtime) return runtime.error();
    return (*runtime)->send_mad(*gsi->port, out);
  });
}

uint16_t nicless_gsi_port_of(uint16_t service_port) {
  return is_rocev2() ? wire::kRoceUdpPort : service_port;
}

int nicless_services_are_sockets(void) {
  return is_rocev2() ? 0 : 1;
}

int nicless_port_hold(uint32_t qpn) {
  Runtime* const runtime = Runtime::find();
  return runtime != nullptr && runtime->hold_port(queue::Qpn(qpn)) ? 0 : ENOENT;
}

void nicless_port_release(uint32_t qpn) {
  if (Runtime* const runtime = Runtime::find()) runtime->release_port(queue::Qpn(qpn));
}

uint32_t nicless_qpns_behind(uint16_t port, uint32_t* first) {
  const wire::Addressing numbers = is_rocev2() ? wire::Addressing::strict() : wire::Addressing::port_in_qpn();
  *first = numbers.qpn(port, 0).value();
  return numbers.is_strict() ? 0 : numbers.queue_pairs_per_port();
}

int nicless_counter_file(const char* path, char* room, size_t bytes) {
  const int saved = errno;
  const int failed = value_of([&]() -> Result<void> {
    const std::string file = nicless::provider::counter_file(path);
    if (file.empty() || file.size() >= bytes) return queue::error(ENOENT, {});
    std::memcpy(room, file.c_str(), file.size() + 1);
    return {};
  });
  errno = saved;
  return failed == 0 ? 0 : -1;
}

uint64_t nicless_now(void) {
  return static_cast<std::uint64_t>(wire::now().time_since_epoch().count());
}

uint64_t nicless_random(void) {
  return nicless::provider::random_u64();
}

}  // extern "C"

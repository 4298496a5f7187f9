// SPDX-License-Identifier: MIT
#include "cm/agent.h"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "cm/answers.h"
#include "cm/cm_id.h"
#include "cm/datagram.h"
#include "cm/resolve.h"
#include "provider/private.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

wire::Endpoint to_endpoint(const nicless_endpoint& from) {
  return {wire::from_raw(from.address), from.port};
}

Instant to_instant(std::uint64_t nanoseconds) {
  return Instant(Duration(static_cast<std::int64_t>(nanoseconds)));
}

Agent& agent_of(void* agent) {
  return *static_cast<Agent*>(agent);
}

void mad_arrived(void* self, std::uint64_t at_time, nicless_gsi* at, const nicless_endpoint* remote,
                 const nicless_endpoint* local, const std::uint8_t* mad) {
  std::array<std::byte, wire::CmMessage::kSize> bytes;
  std::memcpy(bytes.data(), mad, bytes.size());
  const wire::DecodedCm decoded = wire::decode_cm(bytes);
  if (!decoded) return;  // never: QP 1 has dropped and counted it (wire/ud/gsi.h)
  Agent& agent = agent_of(self);
  Turn turn(agent);
  agent.on_mad(to_instant(at_time), at, to_endpoint(*remote), to_endpoint(*local).address, decoded.message);
}

void port_unreachable(void* self, std::uint64_t at_time, const nicless_endpoint* remote) {
  Agent& agent = agent_of(self);
  Turn turn(agent);
  agent.on_unreachable(to_instant(at_time), to_endpoint(*remote));
}

// For the thread that exits. Never freed: exit handlers of others may come later.
struct Farewell {
  std::mutex mutex;
  std::condition_variable said;
  bool is_said = false;
};
Farewell& farewell() {
  static Farewell& made = *new Farewell;
  return made;
}

void say_farewell(Agent& agent, Instant at_time) NO_THREAD_SAFETY_ANALYSIS {
  agent.connections.leave(at_time);
  agent.flush(at_time);
  const std::lock_guard lock(farewell().mutex);
  farewell().is_said = true;
  farewell().said.notify_all();
}

void deadline_passed(void* self, std::uint64_t at_time) {
  Agent& agent = agent_of(self);
  Turn turn(agent);
  if (agent.is_leaving.exchange(false)) say_farewell(agent, to_instant(at_time));
  agent.on_deadline(to_instant(at_time));
}

std::uint64_t next_deadline(void* self) {
  Agent& agent = agent_of(self);
  if (agent.is_leaving) return 0;
  Turn turn(agent);
  const auto deadline = agent.next_deadline();
  return deadline ? static_cast<std::uint64_t>(deadline->time_since_epoch().count()) : NICLESS_NEVER;
}

constexpr nicless_cm_agent kCalls{mad_arrived, port_unreachable, deadline_passed, next_deadline};

// What sendmsg(2) says of a way or an address, and not of a moment.
bool is_permanent(int errno_value) {
  switch (errno_value) {
    case EINVAL:
    case EACCES:
    case EPERM:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
      return true;
    default:
      return false;
  }
}

void log_unsent(const MadPath& path, int errno_value) {
  nicless_log(NICLESS_LOG_WARN, ("a message of a connection with " + wire::to_string(path.remote) +
                                 " cannot be sent: " + std::strerror(errno_value))
                                    .c_str());
}

std::uint32_t byte_swapped(std::uint32_t value) {
  return __builtin_bswap32(value);
}

struct Current {
  std::uint64_t generation;
  Agent agent;
};
std::atomic<Current*> current{nullptr};

// What a kernel does for a process that ends: its connections are released. When the process is killed nobody does it,
// and the peer finds out by itself (PeerWatch). The progress thread does it here, and the exiting thread waits, but not
// for long: exit() may have been called from a signal handler, over a lock that the other one needs.
constexpr std::chrono::milliseconds kFarewellWithin(100);

__attribute__((destructor)) void leave_at_exit() NO_THREAD_SAFETY_ANALYSIS {
  Current* seen = current.load();
  if (seen == nullptr || seen->generation != nicless_process_generation()) return;
  Agent& agent = seen->agent;
  if (agent.mutex.try_lock()) {
    const bool is_needed = agent.connections.owes_farewell();
    agent.mutex.unlock();
    if (!is_needed) return;
  }
  agent.is_leaving = true;
  nicless_cm_deadline_changed();
  std::unique_lock lock(farewell().mutex);
  farewell().said.wait_for(lock, kFarewellWithin, [] { return farewell().is_said; });
}

}  // namespace

Instant now() {
  return to_instant(nicless_now());
}

Agent::Agent(std::uint64_t seed) : rng(seed), tid_high(static_cast<std::uint32_t>(seed >> 32)) {}

Agent* Agent::running() {
  Current* seen = current.load(std::memory_order_acquire);
  return seen != nullptr && seen->generation == nicless_process_generation() ? &seen->agent : nullptr;
}

// The parent's agent stays where it is in a child, unused: its lock may be held by a thread that does not exist there.
Result<Agent*> Agent::instance() {
  if (Agent* made = running()) return made;
  Current* seen = current.load(std::memory_order_acquire);
  auto* made = new Current{nicless_process_generation(), Agent(nicless_random())};
  if (!current.compare_exchange_strong(seen, made)) {
    delete made;  // another thread was faster
    return &seen->agent;
  }
  if (int e = nicless_cm_register(&kCalls, &made->agent)) {
    current.store(nullptr);
    return queue::error(e, "the engine that carries the connection manager's datagrams cannot start");
  }
  return &made->agent;
}

// As the kernel does it: the low half of a transaction id is the local id with its bytes the other way round.
Identity Agent::make_identity(std::uint64_t ca_guid) {
  CommId id{};
  do {
    id = CommId(rng.next_u32());
  } while (id.value() == 0 || connections.find(id) != nullptr || resolutions.knows(id.value()));
  return {id, (std::uint64_t{tid_high} << 32) | byte_swapped(id.value()), ca_guid};
}

void Agent::pump(ConnectionEntry& entry, Instant at_time) {
  connections.pump(entry, at_time);
  flush(at_time);
}

void Agent::flush(Instant at_time) {
  while (const auto outgoing = connections.next_message())
    if (const int e = send(outgoing->path, outgoing->message))
      if (!connections.on_unsendable(at_time, outgoing->message, e)) log_unsent(outgoing->path, e);
  while (const auto told = connections.next_event()) report(*told->owner, told->event);
  while (const auto outgoing = resolutions.next_message())
    if (const int e = send(outgoing->path, outgoing->message)) resolutions.on_unsendable(outgoing->message, e);
  while (const auto told = resolutions.next_event()) report(*told->owner, told->resolution);
}

std::optional<Instant> Agent::next_deadline() const {
  return queue::earliest(queue::earliest(connections.next_deadline(), resolutions.next_deadline()),
                         hosts.next_deadline());
}

bool Agent::close_unused() {
  const auto unused = ports.take_unused();
  if (unused.empty() && closing_ == 0) return false;
  close_unlocked(unused);
  closed_.wait(mutex, [this]() NO_THREAD_SAFETY_ANALYSIS { return closing_ == 0; });
  return true;
}

// Closing waits for the progress thread, which may be waiting for the lock.
void Agent::close_unlocked(const std::vector<nicless_gsi*>& unused) {
  ++closing_;
  mutex.unlock();
  for (nicless_gsi* gsi : unused) nicless_gsi_close(gsi);
  mutex.lock();
  --closing_;
  closed_.notify_all();
}

CmId* Agent::find_listener(wire::ServiceId service, const wire::Gid& local) const {
  const auto space = wire::port_space_of(service);
  if (!space) return nullptr;
  return ports.find_listener(static_cast<rdma_port_space>(*space), wire::port_of(service), local);
}

void Agent::orphan(ConnectionEntry& entry, Instant at_time) {
  std::uint16_t port = 0;
  nicless_gsi_shared(&entry.path.gsi, &port);
  connections.orphan(entry, at_time);
  flush(at_time);
}

void Agent::on_mad(Instant at_time, nicless_gsi* at, const wire::Endpoint& remote, const wire::Gid& local,
                   const wire::CmMessage& message) {
  const MadPath path{at, local, remote, 0};
  if (connections.on_message(at_time, path, message) || resolutions.on_message(at_time, path, message))
    return flush(at_time);
  if (std::holds_alternative<wire::CmSidrReq>(message.body)) {
    if (sidr_request_arrived(*this, path, message)) return;
  } else if (const auto* request = std::get_if<wire::CmReq>(&message.body)) {
    CmId* listener = find_listener(request->service, local);
    if (listener == nullptr) return refuse(path, message, wire::RejReason::InvalidServiceId);
    if (const auto why = refuses(*request)) return refuse(path, message, *why);
    return request_arrived(*this, *listener, path, message);
  }
  if (const auto reply = answer_of_nobody(message)) send(path, *reply);
}

void Agent::on_unreachable(Instant at_time, const wire::Endpoint& remote) {
  connections.on_unreachable(at_time, remote);
  std::uint32_t first = 0;
  if (const std::uint32_t count = nicless_qpns_behind(remote.port, &first))
    connections.on_data_port_closed(at_time, remote.address, {queue::Qpn(first), count});
  resolutions.on_unreachable(at_time, remote);
  flush(at_time);
}

void Agent::on_deadline(Instant at_time) {
  connections.on_deadline(at_time);
  resolutions.on_deadline(at_time);
  flush(at_time);
  look_for_hosts(*this, at_time);
}

Result<MadPath> path_to_service(const CmId& id) {
  MadPath path{nullptr, id.local, {id.remote.address, nicless_gsi_port_of(id.remote.port)}, id.tos};
  std::uint16_t port = 0;
  if (id.binding) {
    path.gsi = id.binding->socket->gsi;
  } else if (int e = nicless_gsi_shared(&path.gsi, &port)) {
    return queue::error(e, "the process's UDP socket for outgoing connections cannot be opened");
  }
  return path;
}

std::shared_ptr<void> hold_data_port(queue::Qpn qpn) {
  const std::uint32_t number = qpn.value();
  if (nicless_port_hold(number) != 0) return nullptr;
  return {nullptr, [number](void*) { nicless_port_release(number); }};
}

int send(const MadPath& path, const wire::CmMessage& message) {
  const auto bytes = wire::encode(message);
  nicless_endpoint remote{};
  wire::to_raw(path.remote.address, remote.address);
  remote.port = path.remote.port;
  const int failure =
      nicless_gsi_send(path.gsi, reinterpret_cast<const std::uint8_t*>(path.local.bytes.data()), &remote,
                       path.traffic_class, reinterpret_cast<const std::uint8_t*>(bytes.data()));
  return is_permanent(failure) ? failure : 0;
}

void refuse(const MadPath& path, const wire::CmMessage& request, wire::RejReason why) {
  send(path, refusal(request, why));
}

Turn::Turn(Agent& agent) NO_THREAD_SAFETY_ANALYSIS : agent_(agent) {
  agent_.mutex.lock();
  deadline_before_ = agent_.next_deadline();
}

Turn::~Turn() NO_THREAD_SAFETY_ANALYSIS {
  const auto deadline = agent_.next_deadline();
  if (const auto unused = agent_.ports.take_unused(); !unused.empty()) agent_.close_unlocked(unused);
  agent_.mutex.unlock();
  if (deadline && (!deadline_before_ || *deadline < *deadline_before_)) nicless_cm_deadline_changed();
}

}  // namespace nicless::cm

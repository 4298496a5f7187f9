// SPDX-License-Identifier: MIT
// Hosts with a process each that connect to one another, in virtual time: every process has the Switchboard of a real
// one and a listener, which can go and come; links lose, double and reorder their messages; a process can be killed,
// and another started in its place. What the programs do is the test's, and scheduled with at(). Thread-compatible.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cm/switchboard.h"
#include "queue/rng.h"
#include "tests/cm/story.h"
#include "wire/link.h"

namespace nicless::cm::test {

using queue::Instant;

// An rdma_cm_id, as far as the connection machine knows it, and all that its program was told.
struct Id : Story {
  std::size_t host = 0;
  int life = 0;  // of the process
  std::string name;
  queue::Qpn qpn{};
  ConnectionEntry* entry = nullptr;  // null: destroyed, or its process is dead
  std::vector<ConnectionEvent> events;
  bool is_impossible = false;  // it has heard what may not follow
  bool is_denied = false;      // its peer was told that nobody listens

  Connection& connection() { return entry->connection; }
  bool is_established() const { return entry != nullptr && entry->connection.is_established(); }
};

struct NetworkConfig {
  std::size_t hosts = 2;
  bool is_strict = false;  // one UDP port for all, and queue pair numbers that begin anew with each process
  std::size_t backlog = 8;
  wire::LinkConfig faults;
};

class Network {
 public:
  explicit Network(const NetworkConfig& config);

  std::function<void(Id&)> on_request;  // CONNECT_REQUEST
  std::function<void(Id&, const ConnectionEvent&)> on_event;

  void at(Instant when, std::function<void()> what) { agenda_.emplace(when, std::move(what)); }
  Id& connect(std::size_t from, std::size_t to);
  // Wishes of the program; what they lead to is carried out at once.
  void accept(Id& id);
  void establish(Id& id);
  void reject(Id& id);
  void disconnect(Id& id);
  void destroy(Id& id);
  // Its queue pair has something to send. Nobody is there: ICMP says so.
  void send_data(const Id& id);
  void kill(std::size_t host);   // says nothing any more; its ports are closed
  void exit(std::size_t host);   // says farewell before
  void start(std::size_t host);  // after kill()
  void stop_listening(std::size_t host);
  void listen(std::size_t host);  // after that
  bool has_service_port(std::size_t host) const { return !hosts_[host].service_port.expired(); }
  bool is_alive(std::size_t host) const { return hosts_[host].board != nullptr; }
  void cut(std::size_t host, queue::Duration time);  // nothing comes to it or from it
  void heal();                                       // no faults from now on
  void lose_next(std::size_t from, std::size_t to, const std::string& name);
  // A message that nobody sent, as if it came from that process.
  void forge(std::size_t from, std::size_t to, const wire::CmMessage& message);

  void run_until(Instant until);
  // Until nothing will ever happen any more. False: it does not come to that within the time.
  bool run_until_idle(queue::Duration limit);

  std::list<Id>& ids() { return ids_; }
  Id* peer_of(const Id& id);  // the id at the other end, if it is there
  std::size_t connections(std::size_t host) const { return hosts_[host].board->size(); }
  std::string trace() const;
  std::size_t sent(std::size_t host) const { return hosts_[host].sent; }  // messages, in all its lives

  Instant now{};

 private:
  struct Host {
    std::unique_ptr<Switchboard> board;  // null: no process
    int lives = 0;
    std::uint32_t queue_pairs = 0;
    std::size_t queued = 0;  // requests that the program has not fetched
    std::size_t sent = 0;
    Instant cut_until{};
    std::shared_ptr<int> listener;      // null: nobody listens
    std::weak_ptr<int> service_port{};  // there while somebody holds it
  };
  bool step(Instant until);
  void rebuild_links(const wire::LinkConfig& faults);
  std::optional<Instant> next_time() const;
  void arrive(std::size_t from, std::size_t host, const wire::LinkDatagram& datagram);
  void deny(std::size_t host, const wire::LinkDatagram& datagram);
  void request_arrived(std::size_t host, const MadPath& path, const wire::CmMessage& message);
  void act(Id& id);
  void flush(std::size_t host);
  void send(std::size_t from, const Switchboard::Outgoing& outgoing);
  wire::Endpoint process_endpoint(std::size_t host) const;
  wire::Endpoint service_endpoint(std::size_t host) const;
  bool is_open(std::size_t host, std::uint16_t port) const;
  queue::Qpn next_qpn(std::size_t host);
  Identity make_identity(std::size_t host);
  Id& add_id(std::size_t host, bool is_active);
  void note(const std::string& line);
  wire::Link& link(std::size_t from, std::size_t to) { return links_[from * hosts_.size() + to]; }

  const NetworkConfig config_;
  queue::Rng rng_;
  std::vector<Host> hosts_;
  std::vector<wire::Link> links_;
  std::multimap<Instant, std::function<void()>> agenda_;
  std::list<Id> ids_;
  std::deque<std::string> trace_;
};

}  // namespace nicless::cm::test

// SPDX-License-Identifier: MIT
// Goal: the progress thread serves ports nobody polls, keeps off those that are polled, takes them back, meets the
// owner's deadlines, and sleeps otherwise.
// Method: real ports on loopback with management datagrams as traffic; an owner that counts and tells. Waiting is for a
// condition variable, bounded.
#include "wire/io/progress_thread.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "tests/support/mads.h"
#include "wire/io/clock.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

constexpr std::chrono::seconds kPatience{20};

// Lives as long as the process, like the thread.
class Owner final : public ProgressOwner {
 public:
  void on_turn(UdpPort& port, const TurnReport& report) override {
    const std::lock_guard lock(mutex_);
    received_ += report.received;
    last_port_ = &port;
    changed_.notify_all();
  }
  void on_unwatchable(int errno_value) override {
    const std::lock_guard lock(mutex_);
    unwatchable_ = errno_value;
    changed_.notify_all();
  }
  std::optional<queue::Instant> on_wake(queue::Instant now) override {
    const std::lock_guard lock(mutex_);
    ++wakes_;
    if (deadline_ && *deadline_ <= now) {
      deadline_.reset();
      ++deadlines_met_;
    }
    changed_.notify_all();
    return deadline_;
  }

  void set_deadline(queue::Instant deadline) {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
  }
  template <typename F>
  bool wait_for(F&& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return holds(*this); });
  }

  template <typename F>
  auto read(F&& f) {
    const std::lock_guard lock(mutex_);
    return f(*this);
  }

  // Under the lock: inside wait_for and read.
  std::size_t received_ = 0;
  std::size_t wakes_ = 0;
  std::size_t deadlines_met_ = 0;
  int unwatchable_ = 0;
  UdpPort* last_port_ = nullptr;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<queue::Instant> deadline_;
};

// Has one deadline, which is due at once.
class DueQueuePair final : public QueuePair {
 public:
  void on_packet(queue::Instant, const PacketView&, const InDatagram&) override {}
  void on_post(queue::Instant) override {}
  void on_deadline(queue::Instant) override { is_met.store(true); }
  bool next_datagram(queue::Instant, OutDatagram&) override { return false; }
  std::optional<queue::Instant> next_deadline() const override {
    return is_met.load() ? std::nullopt : std::optional(queue::Instant{});
  }
  std::atomic<bool> is_met{false};
};

// One thread serves all tests: it never ends.
struct World {
  World() {
    auto started = ProgressThread::start(owner);
    REQUIRE(started.has_value());
    thread = *started;
  }
  Owner owner;
  ProgressThread* thread = nullptr;
};
World& world() {
  static World& made = *new World;
  return made;
}

std::size_t received() {
  return world().owner.read([](Owner& o) { return o.received_; });
}

struct Watched {
  Watched() {
    auto opened = UdpPort::open(any_address(), nullptr);
    REQUIRE(opened.has_value());
    port = *opened;
    REQUIRE(world().thread->watch(port).has_value());
  }
  ~Watched() {
    world().thread->unwatch(*port);
    queue::MutexLock lock(port->mutex);
    port->close();
  }
  std::shared_ptr<UdpPort> port;
};

void send_to(UdpPort& to) {
  auto from = UdpPort::open(any_address(), nullptr);
  REQUIRE(from.has_value());
  Mad mad;
  in_addr loopback{};
  loopback.s_addr = htonl(INADDR_LOOPBACK);
  mad.from = {gid_of(loopback), (*from)->udp_port()};
  mad.to = {gid_of(loopback), to.udp_port()};
  mad.bytes = test::numbered_mad(1);
  queue::MutexLock lock((*from)->mutex);
  (*from)->engine().gsi().post(mad);
  (*from)->send(now());
}

}  // namespace

TEST_CASE("the deadline of a port whose poller has gone is met", "[progress]") {
  Watched watched;
  DueQueuePair queue_pair;
  watched.port->mark_polled(now() + std::chrono::seconds(1));  // polls that go on for a second
  send_to(*watched.port);
  REQUIRE(world().owner.wait_for([&](Owner&) { return !watched.port->is_watched(); }));
  queue::Qpn qpn{};
  {
    queue::MutexLock lock(watched.port->mutex);
    qpn = *watched.port->engine().reserve_qpn();
    watched.port->engine().add(qpn, queue_pair);
    watched.port->send(now());
  }
  CHECK(world().owner.wait_for([&](Owner&) { return queue_pair.is_met.load(); }));
  queue::MutexLock lock(watched.port->mutex);
  watched.port->engine().remove(qpn);
}

TEST_CASE("a port that nobody polls is served", "[progress]") {
  const Watched watched;
  const std::size_t before = received();
  send_to(*watched.port);
  CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));
  CHECK(world().owner.read([](Owner& o) { return o.last_port_; }) == watched.port.get());
}

TEST_CASE("a polled port is left to its poller, and taken back when the polls end", "[progress]") {
  const Watched watched;
  const std::size_t before = received();
  watched.port->mark_polled(now() + std::chrono::seconds(1));  // polls that go on for a second
  send_to(*watched.port);
  CHECK(world().owner.wait_for([&](Owner&) { return !watched.port->is_watched(); }));
  CHECK(received() == before);
  CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));
  CHECK(watched.port->is_watched());
}

TEST_CASE("a poller that will wait instead gives the port back at once", "[progress]") {
  const Watched watched;
  const std::size_t before = received();
  watched.port->mark_polled(now() + std::chrono::hours(1));
  send_to(*watched.port);
  CHECK(world().owner.wait_for([&](Owner&) { return !watched.port->is_watched(); }));
  world().thread->take_back(*watched.port);
  CHECK(watched.port->is_watched());
  CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));
}

TEST_CASE("a poller that is away while datagrams wait, again and again, is one that goes", "[progress]") {
  const Watched watched;
  for (std::uint32_t i = 0; i < PollerHabit::kSignsNeeded; ++i) {
    CHECK_FALSE(watched.port->has_poller_that_goes());
    const std::size_t before = received();
    watched.port->mark_polled(now() + std::chrono::hours(1));
    send_to(*watched.port);
    CHECK(world().owner.wait_for([&](Owner&) { return !watched.port->is_watched(); }));
    watched.port->mark_polled({});  // the last poll was long ago
    world().thread->wake();
    CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));
  }
  // Noted after the owner has heard of the turn, before it has the next one.
  const std::size_t wakes = world().owner.read([](Owner& o) { return o.wakes_; });
  world().thread->wake();
  CHECK(world().owner.wait_for([&](Owner& o) { return o.wakes_ > wakes; }));
  CHECK(watched.port->has_poller_that_goes());
}

TEST_CASE("a port that its poller leaves is served at once, until the poller is back", "[progress]") {
  const Watched watched;
  const queue::Instant ahead = now() + std::chrono::hours(1);
  watched.port->mark_polled(ahead);
  world().thread->come_back(*watched.port, now());
  CHECK_FALSE(watched.port->is_watched());

  std::size_t before = received();
  world().thread->leave(*watched.port, now());
  CHECK(watched.port->is_left());
  CHECK(watched.port->is_watched());
  send_to(*watched.port);
  CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));

  watched.port->mark_polled(ahead);
  world().thread->come_back(*watched.port, now());
  CHECK_FALSE(watched.port->is_left());
  CHECK_FALSE(watched.port->is_watched());
  before = received();
  send_to(*watched.port);
  world().thread->take_back(*watched.port);
  CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));
}

TEST_CASE("a program that waits for events is not expected back", "[progress]") {
  const Watched watched;
  world().thread->leave(*watched.port, now());
  REQUIRE(watched.port->is_left());
  world().thread->take_back(*watched.port);
  CHECK_FALSE(watched.port->is_left());
  CHECK(watched.port->is_watched());
}

TEST_CASE("a poller that came back and then stays away for ever loses the port to the thread", "[progress]") {
  const Watched watched;
  world().thread->leave(*watched.port, now());
  const std::size_t before = received();
  const queue::Instant back = now() + std::chrono::milliseconds(20);
  watched.port->mark_polled(back);  // and never again
  world().thread->come_back(*watched.port, back);
  CHECK_FALSE(watched.port->is_watched());
  send_to(*watched.port);
  CHECK(world().owner.wait_for([&](Owner& o) { return o.received_ == before + 1; }));
  CHECK(watched.port->is_watched());
}

TEST_CASE("the owner's deadline is met, and an earlier one wakes the thread", "[progress]") {
  Owner& owner = world().owner;
  const std::size_t met = owner.read([](Owner& o) { return o.deadlines_met_; });
  const std::size_t wakes = owner.read([](Owner& o) { return o.wakes_; });
  owner.set_deadline(now() + std::chrono::hours(1));
  world().thread->wake();
  REQUIRE(owner.wait_for([&](Owner& o) { return o.wakes_ > wakes; }));
  const queue::Instant soon = now() + std::chrono::milliseconds(5);
  owner.set_deadline(soon);
  world().thread->wake_by(soon);
  CHECK(owner.wait_for([&](Owner& o) { return o.deadlines_met_ == met + 1; }));
}

TEST_CASE("a port that is unwatched can be closed while datagrams come", "[progress]") {
  for (int i = 0; i < 50; ++i) {
    const Watched watched;
    send_to(*watched.port);
  }
}

TEST_CASE("the thread knows itself", "[progress]") {
  CHECK_FALSE(world().thread->is_this_thread());
}

// Its descriptor is closed for a while behind everybody's back: epoll_ctl(2) refuses it, as where a limit is reached.
TEST_CASE("a port that the system does not let the thread wait for is looked at all the same, and told of",
          "[progress]") {
  Watched watched;
  const int fd = [&] {
    queue::MutexLock lock(watched.port->mutex);
    return watched.port->fd();
  }();
  watched.port->mark_polled(now() + std::chrono::hours(1));
  world().thread->come_back(*watched.port, now());
  const int kept = dup(fd);
  REQUIRE(kept >= 0);
  close(fd);
  world().thread->take_back(*watched.port);
  CHECK(world().owner.wait_for([](Owner& o) { return o.unwatchable_ == EBADF; }));
  REQUIRE(dup2(kept, fd) == fd);
  close(kept);
  const std::size_t before = received();
  send_to(*watched.port);
  CHECK(world().owner.wait_for([before](Owner& o) { return o.received_ > before; }));
}

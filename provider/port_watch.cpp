// SPDX-License-Identifier: MIT
#include "provider/port_watch.h"

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "provider/interfaces.h"
#include "provider/process.h"
#include "queue/mutex.h"

namespace nicless::provider {
namespace {

struct Listeners {
  queue::Mutex mutex;
  std::vector<Context*> contexts GUARDED_BY(mutex);
};

// Static storage that nothing destroys, and that a forked child makes anew: the parent's contexts are dead there.
alignas(Listeners) std::array<std::byte, sizeof(Listeners)> storage;
Listeners& listeners() {
  static Listeners& made = *new (storage.data()) Listeners;
  return made;
}
void on_child_fork() {
  new (&listeners()) Listeners;
}

bool is_up(const Device& device, const std::vector<Interface>& interfaces) {
  return std::any_of(device.gids.begin(), device.gids.end(), [&](const GidEntry& entry) {
    return std::any_of(interfaces.begin(), interfaces.end(),
                       [&](const Interface& interface) { return interface.index == entry.interface_index; });
  });
}

void tell(const Device& device, queue::AsyncType type) {
  Listeners& all = listeners();
  queue::MutexLock lock(all.mutex);
  for (Context* const context : all.contexts) {
    if (&device_of(public_context(*context)) == &device) context->async_events.push({type, nullptr});
  }
}

}  // namespace

void add_listener(Context& context) {
  watch_forks(on_child_fork);
  Listeners& all = listeners();
  queue::MutexLock lock(all.mutex);
  all.contexts.push_back(&context);
}

void forget_listener(Context& context) {
  Listeners& all = listeners();
  queue::MutexLock lock(all.mutex);
  std::erase(all.contexts, &context);
}

void look_at_ports() {
  const std::vector<Interface> interfaces = read_interfaces();
  for (Device* const device : known_devices()) {
    if (device->gids.empty()) continue;  // never had a port to speak of
    const bool is_active = is_up(*device, interfaces);
    if (device->is_link_up.exchange(is_active) == is_active) continue;
    tell(*device, is_active ? queue::AsyncType::PortActive : queue::AsyncType::PortErr);
  }
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
#include "cm/hosts.h"

#include "cm/address.h"
#include "cm/neighbour.h"

namespace nicless::cm {

bool Hosts::reach(Instant now, const sockaddr& source, const sockaddr& destination, CmId* id, Instant deadline) {
  const HostSearch::Way way{to_gid(source), to_gid(destination)};
  const bool is_here = is_loopback(destination) || way.from == way.to;
  if (is_here || is_multicast(destination) || search_.is_known(now, way)) return true;
  if (!search_.is_searching(way) && !begin(now, way, source, destination)) return true;
  search_.wait_for(now, way, id, deadline);
  return false;
}

// False: there is nothing to wait for.
bool Hosts::begin(Instant now, const HostSearch::Way& way, const sockaddr& source, const sockaddr& destination) {
  if (is_known_neighbour(source, destination)) {
    search_.on_sight(now, way, HostSearch::Sight::Found);
    return false;
  }
  Probe& probe = probes_.try_emplace(way, destination.sa_family).first->second;
  if (probe.socket.is_open() && probe.socket.bind(source) && probe.socket.connect(destination) &&
      probe.socket.solicit(probe.family)) {
    const HostSearch::Sight sight = probe.socket.look();
    search_.on_sight(now, way, sight);
    if (sight != HostSearch::Sight::Found) return true;
  }
  probes_.erase(way);
  return false;
}

void Hosts::forget(CmId* id) {
  search_.forget(id);
  close_unused();
}

void Hosts::on_deadline(Instant now) {
  while (const auto way = search_.next_look(now)) {
    Probe& probe = probes_.at(*way);
    const HostSearch::Sight sight = probe.socket.look();
    if (sight == HostSearch::Sight::Lost) probe.socket.solicit(probe.family);
    search_.on_sight(now, *way, sight);
  }
  search_.on_deadline(now);
  close_unused();
}

void Hosts::close_unused() {
  std::erase_if(probes_, [this](const auto& probe) { return !search_.is_searching(probe.first); });
}

}  // namespace nicless::cm

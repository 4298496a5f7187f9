// SPDX-License-Identifier: MIT
// Ids of rdma_cm: calls out of order, addresses and parameters that cannot be, and what peers answer.
#include <arpa/inet.h>
#include <infiniband/ib.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <utility>

#include "tests/cm/rdma_fixture.h"
#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

using EventChannel = cm::test::Channel;
using cm::test::ipv4;
using cm::test::Listener;
using cm::test::new_id;
using cm::test::resolved;
using cm::test::Seen;
using cm::test::usual_param;

std::string answer_of(int result) {
  return result == 0 ? "accepted" : Bench::errno_name(errno);
}

std::string outcome(EventChannel& channel) {
  const Seen seen = channel.next();
  return std::string(rdma_event_str(seen.type)).substr(sizeof "RDMA_CM_EVENT_" - 1) + " " + std::to_string(seen.status);
}

// mistake(id) on a new id, which goes afterwards.
template <typename F>
std::string on_new_id(rdma_port_space space, F&& mistake) {
  EventChannel channel;
  rdma_cm_id* id = new_id(channel, space);
  const std::string answer = answer_of(mistake(id));
  cm::test::destroy(id);
  return answer;
}

// On an id that may connect, to a port where nobody listens.
template <typename F>
std::string on_resolved_id(rdma_port_space space, F&& mistake) {
  EventChannel channel;
  rdma_cm_id* id = resolved(channel, ipv4("127.0.0.1", 1), true, space);
  const std::string answer = mistake(id, channel);
  cm::test::destroy(id);
  return answer;
}

int bind(rdma_cm_id* id, const char* address, std::uint16_t port = 0) {
  sockaddr_storage to = ipv4(address, port);
  return rdma_bind_addr(id, cm::test::as_sockaddr(to));
}

int join(rdma_cm_id* id, const char* address) {
  sockaddr_storage group = ipv4(address, 0);
  return rdma_join_multicast(id, cm::test::as_sockaddr(group), nullptr);
}

std::string take_taken_port(Bench& bench) {
  EventChannel channel;
  const Listener first(channel);
  bench.names.add("port", std::to_string(first.port()));
  return on_new_id(RDMA_PS_TCP, [&](rdma_cm_id* id) { return bind(id, "127.0.0.1", first.port()); });
}

// A listener answers the request of a client with `answer`; what the client hears.
template <typename F>
std::string hear(Bench& bench, int qp_type, F&& answer) {
  EventChannel passive;
  EventChannel active;
  const Listener listener(passive);
  bench.names.add("port", std::to_string(listener.port()));
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()), false);
  client->qp_type = static_cast<ibv_qp_type>(qp_type);
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  answer(passive);
  const std::string heard = outcome(active);
  cm::test::destroy(client);
  return heard;
}

void refuse(EventChannel& passive) {
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  REQUIRE(rdma_reject(request.id, nullptr, 0) == 0);
  cm::test::destroy(request.id);
}

std::string connect_with(rdma_cm_id* id, const rdma_conn_param& param) {
  rdma_conn_param copy = param;
  return answer_of(rdma_connect(id, &copy));
}

}  // namespace

const std::vector<Mistake> kMistakesWithConnections{
    {"an id of no port space",
     "EINVAL",
     {"rdma_create_id: EINVAL, no such port space"},
     [](Bench&) {
       const EventChannel channel;
       rdma_cm_id* id = nullptr;
       return answer_of(rdma_create_id(channel.get(), &id, nullptr, static_cast<rdma_port_space>(7)));
     }},
    {"an address that this machine has not",
     "EADDRNOTAVAIL",
     {"rdma_bind_addr: EADDRNOTAVAIL, 192.0.2.77:0: this machine has no such address"},
     [](Bench&) { return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) { return bind(id, "192.0.2.77"); }); }},
    {"a port that another id of the process has",
     "EADDRINUSE",
     {"rdma_bind_addr: EADDRINUSE, port {port} is taken by another id of this process"},
     take_taken_port},
    {"an id bound twice",
     "EINVAL",
     {"rdma_bind_addr: EINVAL, the id is bound already"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         REQUIRE(bind(id, "127.0.0.1") == 0);
         return bind(id, "127.0.0.1");
       });
     }},
    {"an address resolved twice",
     "EINVAL",
     {"rdma_resolve_addr: EINVAL, the id has the address of its peer already"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel&) {
         sockaddr_storage there = cm::test::ipv4("127.0.0.1", 1);
         return answer_of(rdma_resolve_addr(id, nullptr, cm::test::as_sockaddr(there), 1000));
       });
     }},
    {"a listener that is to connect",
     "EINVAL",
     {"rdma_resolve_addr: EINVAL, the id listens already"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         REQUIRE(bind(id, "127.0.0.1") == 0);
         REQUIRE(rdma_listen(id, 1) == 0);
         sockaddr_storage there = cm::test::ipv4("127.0.0.1", 1);
         return rdma_resolve_addr(id, nullptr, cm::test::as_sockaddr(there), 1000);
       });
     }},
    {"an address of no family that there is",
     "EINVAL",
     {"rdma_resolve_addr: EINVAL, the address is none of AF_INET, AF_INET6 and AF_IB"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         sockaddr_storage none{};
         return rdma_resolve_addr(id, nullptr, cm::test::as_sockaddr(none), 1000);
       });
     }},
    {"an address of InfiniBand",
     "ENODEV",
     {"rdma_resolve_addr: ENODEV, AF_IB addresses are of InfiniBand ports, and this one is RoCE's: use the IP address, "
      "10.0.0.1:0"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         sockaddr_ib there{};
         there.sib_family = AF_IB;
         inet_pton(AF_INET6, "::ffff:10.0.0.1", &there.sib_addr);
         return rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&there), 1000);
       });
     }},
    {"an id whose event channel was destroyed",
     "EBADF",
     {"rdma_listen: EBADF, the id's event channel was destroyed; all that is left to do is to destroy the id"},
     [](Bench&) {
       rdma_event_channel* channel = rdma_create_event_channel();
       rdma_cm_id* id = nullptr;
       REQUIRE(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0);
       rdma_destroy_event_channel(channel);
       const std::string answer = answer_of(rdma_listen(id, 1));
       cm::test::destroy(id);
       return answer;
     }},
    {"a look-up by a subnet administrator",
     "ENOENT",
     {"rdma_getaddrinfo: ENOENT, no port has a subnet administrator to ask, as none is InfiniBand's; leave out RAI_SA"},
     [](Bench&) {
       constexpr int kLookUpBySa = 0x10;  // RAI_SA, which older headers lack
       rdma_addrinfo hints{};
       hints.ai_flags = kLookUpBySa;
       rdma_addrinfo* found = nullptr;
       return answer_of(rdma_getaddrinfo(nullptr, "7471", &hints, &found));
     }},
    {"a route before an address",
     "EINVAL",
     {"rdma_resolve_route: EINVAL, rdma_resolve_addr has to succeed before, and once is enough"},
     [](Bench&) { return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) { return rdma_resolve_route(id, 1000); }); }},
    {"a queue pair before a device",
     "EINVAL",
     {"rdma_create_qp: EINVAL, the id is not bound to a device"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         ibv_qp_init_attr attr = cm::test::small_qp();
         return rdma_create_qp(id, nullptr, &attr);
       });
     }},
    {"a second queue pair",
     "EINVAL",
     {"rdma_create_qp: EINVAL, the id has a queue pair already"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel&) {
         ibv_qp_init_attr attr = cm::test::small_qp();
         return answer_of(rdma_create_qp(id, nullptr, &attr));
       });
     }},
    {"a connection without a route",
     "EINVAL",
     {"rdma_connect: EINVAL, the id is not bound to a device"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         rdma_conn_param param = usual_param();
         return rdma_connect(id, &param);
       });
     }},
    {"more private data than a request holds",
     "EINVAL",
     {"rdma_connect: EINVAL, 57 bytes of private data; 56 fit into the message"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel&) {
         static const char data[57]{};
         rdma_conn_param param = usual_param();
         param.private_data = data;
         param.private_data_len = sizeof data;
         return connect_with(id, param);
       });
     }},
    {"more reads at once than the device takes",
     "EINVAL",
     {"rdma_connect: EINVAL, responder_resources is more than the device's max_qp_rd_atom"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel&) {
         rdma_conn_param param = usual_param();
         param.responder_resources = 200;
         return connect_with(id, param);
       });
     }},
    {"an id accepted that did not come with a request",
     "EINVAL",
     {"rdma_accept: EINVAL, the id did not come with a CONNECT_REQUEST, or was accepted already"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         rdma_conn_param param = usual_param();
         return rdma_accept(id, &param);
       });
     }},
    {"an id disconnected that was never connected",
     "EINVAL",
     {"rdma_disconnect: EINVAL, the id was never connected"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel&) { return answer_of(rdma_disconnect(id)); });
     }},
    {"an id established that has a queue pair",
     "EINVAL",
     {"rdma_establish: EINVAL, the id has a queue pair: its connection is established for it"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel&) { return answer_of(rdma_establish(id)); });
     }},
    {"an option of the wrong size",
     "EINVAL",
     {"rdma_set_option: EINVAL, the option takes 1 bytes"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         int tos = 1;
         return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos);
       });
     }},
    {"a group that is none",
     "EINVAL",
     {"rdma_join_multicast: EINVAL, 10.0.0.1 is no multicast group"},
     [](Bench&) {
       return on_new_id(RDMA_PS_UDP, [](rdma_cm_id* id) {
         REQUIRE(bind(id, "127.0.0.1") == 0);
         return join(id, "10.0.0.1");
       });
     }},
    {"a group joined by an id of connections",
     "EINVAL",
     {"rdma_join_multicast: EINVAL, only datagram ids (RDMA_PS_UDP, RDMA_PS_IPOIB) join groups"},
     [](Bench&) {
       return on_new_id(RDMA_PS_TCP, [](rdma_cm_id* id) {
         REQUIRE(bind(id, "127.0.0.1") == 0);
         return join(id, "239.1.2.3");
       });
     }},
    {"a connection where nobody listens",
     "REJECTED 8",
     {"connection with 127.0.0.1:1: REJECTED, reason 8: nobody listens there, or who does is in the other mode "
      "(--rocev2 or not)"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_TCP, [](rdma_cm_id* id, EventChannel& channel) {
         REQUIRE(connect_with(id, usual_param()) == "accepted");
         return outcome(channel);
       });
     }},
    {"a datagram service that nobody offers",
     "UNREACHABLE 1",
     {"datagram service 127.0.0.1:1: UNREACHABLE, status 1: nobody listens there, or who does is in the other mode "
      "(--rocev2 or not)"},
     [](Bench&) {
       return on_resolved_id(RDMA_PS_UDP, [](rdma_cm_id* id, EventChannel& channel) {
         REQUIRE(connect_with(id, {}) == "accepted");
         return outcome(channel);
       });
     }},
    {"a connection that the program there refuses",
     "REJECTED 28",
     {"connection with 127.0.0.1:{port}: REJECTED, reason 28: the program there refused, or closed its listener or its "
      "id, or ended, before it stood"},
     [](Bench& bench) { return hear(bench, IBV_QPT_RC, refuse); }},
    {"a connection of ends with different types of queue pairs",
     "REJECTED 9",
     {"connection with 127.0.0.1:{port}: REJECTED, reason 9: the queue pairs of the two ends are of different types"},
     [](Bench& bench) { return hear(bench, IBV_QPT_UC, [](EventChannel&) {}); }},
};

}  // namespace nicless::test

// SPDX-License-Identifier: MIT
// Goal: the table of ibv_modify_qp is exactly the man page's and the kernel's, for each transport and each of the 7x7
// pairs of states, and a refusal names what is wrong. Method: the expected table below, written as attribute names;
// every mask that differs from it in one attribute is tried, over every pair of states.
#include "wire/qp/qp_state.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace nicless::wire {
namespace {

using Pair = std::pair<QpState, QpState>;
constexpr std::array kAllStates{QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts,
                                QpState::Sqd,   QpState::Sqe,  QpState::Err};
constexpr std::uint32_t kAllBits = 0x1fffff | attr_mask::kRateLimit;

// Attributes as the man page spells them, without IBV_QP_.
struct Expected {
  Pair edge;
  std::string required;
  std::string optional;
};

const std::vector<Expected> kRc{
    {{QpState::Reset, QpState::Init}, "PKEY_INDEX PORT ACCESS_FLAGS", ""},
    {{QpState::Init, QpState::Init}, "", "PKEY_INDEX PORT ACCESS_FLAGS"},
    {{QpState::Init, QpState::Rtr},
     "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
     "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {{QpState::Rtr, QpState::Rts},
     "SQ_PSN MAX_QP_RD_ATOMIC RETRY_CNT RNR_RETRY TIMEOUT",
     "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Sqd}, "", "EN_SQD_ASYNC_NOTIFY"},
    {{QpState::Sqd, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Sqd, QpState::Sqd},
     "",
     "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX "
     "MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Sqe, QpState::Rts}, "", ""},
};

const std::vector<Expected> kUc{
    {{QpState::Reset, QpState::Init}, "PKEY_INDEX PORT ACCESS_FLAGS", ""},
    {{QpState::Init, QpState::Init}, "", "PKEY_INDEX PORT ACCESS_FLAGS"},
    {{QpState::Init, QpState::Rtr}, "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {{QpState::Rtr, QpState::Rts}, "SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Sqd}, "", "EN_SQD_ASYNC_NOTIFY"},
    {{QpState::Sqd, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {{QpState::Sqd, QpState::Sqd}, "", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    {{QpState::Sqe, QpState::Rts}, "", "CUR_STATE ACCESS_FLAGS"},
};

const std::vector<Expected> kUd{
    {{QpState::Reset, QpState::Init}, "PKEY_INDEX PORT QKEY", ""},
    {{QpState::Init, QpState::Init}, "", "PKEY_INDEX PORT QKEY"},
    {{QpState::Init, QpState::Rtr}, "", "PKEY_INDEX QKEY"},
    {{QpState::Rtr, QpState::Rts}, "SQ_PSN", "CUR_STATE QKEY"},
    {{QpState::Rts, QpState::Rts}, "", "CUR_STATE QKEY"},
    {{QpState::Rts, QpState::Sqd}, "", "EN_SQD_ASYNC_NOTIFY"},
    {{QpState::Sqd, QpState::Rts}, "", "CUR_STATE QKEY"},
    {{QpState::Sqd, QpState::Sqd}, "", "PKEY_INDEX QKEY"},
    {{QpState::Sqe, QpState::Rts}, "", "CUR_STATE QKEY"},
};

const std::vector<Expected> kXrcInitiator{
    {{QpState::Reset, QpState::Init}, "PKEY_INDEX PORT ACCESS_FLAGS", ""},
    {{QpState::Init, QpState::Init}, "", "PKEY_INDEX PORT ACCESS_FLAGS"},
    {{QpState::Init, QpState::Rtr}, "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {{QpState::Rtr, QpState::Rts},
     "SQ_PSN MAX_QP_RD_ATOMIC RETRY_CNT RNR_RETRY TIMEOUT",
     "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Sqd}, "", "EN_SQD_ASYNC_NOTIFY"},
    {{QpState::Sqd, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {{QpState::Sqd, QpState::Sqd},
     "",
     "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    {{QpState::Sqe, QpState::Rts}, "", ""},
};

const std::vector<Expected> kXrcTarget{
    {{QpState::Reset, QpState::Init}, "PKEY_INDEX PORT ACCESS_FLAGS", ""},
    {{QpState::Init, QpState::Init}, "", "PKEY_INDEX PORT ACCESS_FLAGS"},
    {{QpState::Init, QpState::Rtr},
     "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
     "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {{QpState::Rtr, QpState::Rts}, "SQ_PSN TIMEOUT", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Rts, QpState::Sqd}, "", "EN_SQD_ASYNC_NOTIFY"},
    {{QpState::Sqd, QpState::Rts}, "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Sqd, QpState::Sqd},
     "",
     "PORT AV TIMEOUT MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE"},
    {{QpState::Sqe, QpState::Rts}, "", ""},
};

const std::vector<Expected>& list_of(Transport transport) {
  switch (transport) {
    case Transport::Rc:
      break;
    case Transport::Uc:
      return kUc;
    case Transport::Ud:
      return kUd;
    case Transport::XrcInitiator:
      return kXrcInitiator;
    case Transport::XrcTarget:
      return kXrcTarget;
  }
  return kRc;
}

std::uint32_t mask_of(const std::string& words) {
  std::uint32_t mask = 0;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    std::uint32_t found = 0;
    for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
      if (names_of(bit) == "IBV_QP_" + word) found = bit;
    }
    REQUIRE(found != 0);
    mask |= found;
  }
  return mask;
}

struct Masks {
  std::uint32_t required = 0;
  std::uint32_t optional = 0;
};

// Every legal edge of a transport: the list, and the edges that all transports share and that take nothing.
std::map<Pair, Masks> edges_of(Transport transport) {
  const auto& list = list_of(transport);
  std::map<Pair, Masks> edges;
  for (QpState from : kAllStates) {
    edges[{from, QpState::Reset}] = {};
    if (from != QpState::Reset) edges[{from, QpState::Err}] = {};
  }
  for (const Expected& e : list) edges[e.edge] = {mask_of(e.required), mask_of(e.optional)};
  return edges;
}

std::string refusal(Transport transport, Pair edge, std::uint32_t mask) {
  const auto result = check_transition(transport, edge.first, edge.second, mask);
  if (result.has_value()) return "";
  CHECK(result.error().errno_value == EINVAL);
  return result.error().why;
}

std::string prefix(Pair edge) {
  return std::string(to_string(edge.first)) + "->" + to_string(edge.second);
}

std::vector<std::uint32_t> bits_of(std::uint32_t mask) {
  std::vector<std::uint32_t> bits;
  for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((mask & bit) != 0) bits.push_back(bit);
  }
  return bits;
}

const auto any_transport = [] {
  return GENERATE(Transport::Rc, Transport::Uc, Transport::Ud, Transport::XrcInitiator, Transport::XrcTarget);
};

TEST_CASE("an edge takes its required attributes, and refuses a mask that lacks one by its name", "[rc][qp_state]") {
  const Transport transport = any_transport();
  for (const auto& [edge, masks] : edges_of(transport)) {
    INFO(prefix(edge));
    CHECK(refusal(transport, edge, masks.required | attr_mask::kState) == "");
    CHECK(refusal(transport, edge, masks.required) == "");
    for (std::uint32_t bit : bits_of(masks.required)) {
      CHECK(refusal(transport, edge, (masks.required & ~bit) | attr_mask::kState) ==
            prefix(edge) + ": missing " + names_of(bit));
    }
  }
}

TEST_CASE("an edge takes each optional attribute, alone and with all others", "[rc][qp_state]") {
  const Transport transport = any_transport();
  for (const auto& [edge, masks] : edges_of(transport)) {
    INFO(prefix(edge));
    for (std::uint32_t bit : bits_of(masks.optional)) CHECK(refusal(transport, edge, masks.required | bit) == "");
    CHECK(refusal(transport, edge, masks.required | masks.optional | attr_mask::kState) == "");
  }
}

TEST_CASE("an edge refuses every other attribute by its name", "[rc][qp_state]") {
  const Transport transport = any_transport();
  for (const auto& [edge, masks] : edges_of(transport)) {
    INFO(prefix(edge));
    const std::uint32_t taken = masks.required | masks.optional | attr_mask::kState;
    for (std::uint32_t bit : bits_of(kAllBits & ~taken)) {
      CHECK(refusal(transport, edge, masks.required | bit) == prefix(edge) + ": does not take " + names_of(bit));
    }
  }
}

TEST_CASE("all other pairs of states are no transition, whatever the mask", "[rc][qp_state]") {
  const Transport transport = any_transport();
  const auto edges = edges_of(transport);
  std::size_t refused = 0;
  for (QpState from : kAllStates) {
    for (QpState to : kAllStates) {
      if (edges.contains({from, to})) continue;
      ++refused;
      const std::string start = prefix({from, to}) + " is not a transition";
      CHECK(refusal(transport, {from, to}, attr_mask::kState).substr(0, start.size()) == start);
      CHECK(refusal(transport, {from, to}, kAllBits) != "");
    }
  }
  CHECK(refused == 49 - edges.size());
}

TEST_CASE("a refused transition says which way to go", "[rc][qp_state]") {
  const auto why = [](QpState from, QpState to) { return refusal(Transport::Rc, {from, to}, attr_mask::kState); };
  CHECK(why(QpState::Reset, QpState::Rts) == "RESET->RTS is not a transition, go through INIT and RTR");
  CHECK(why(QpState::Reset, QpState::Rtr) == "RESET->RTR is not a transition, go through INIT");
  CHECK(why(QpState::Rts, QpState::Rtr) == "RTS->RTR is not a transition, go through RESET and INIT");
  CHECK(why(QpState::Err, QpState::Rts) == "ERR->RTS is not a transition, go through RESET, INIT and RTR");
  CHECK(why(QpState::Reset, QpState::Err) == "RESET->ERR is not a transition, go through INIT");
  CHECK(why(QpState::Rtr, QpState::Rtr) == "RTR->RTR is not a transition, go through RESET and INIT");
  CHECK(why(QpState::Rts, QpState::Sqe) ==
        "RTS->SQE is not a transition, a queue pair enters SQE by itself when a send fails");
}

TEST_CASE("a state that does not exist is refused", "[rc][qp_state]") {
  CHECK(refusal(Transport::Rc, {QpState::Reset, static_cast<QpState>(9)}, 1) == "there is no queue pair state 9");
}

TEST_CASE("a mask that both lacks and exceeds is told both", "[rc][qp_state]") {
  const std::uint32_t mask = attr_mask::kState | attr_mask::kPkeyIndex | attr_mask::kQkey | attr_mask::kSqPsn;
  CHECK(refusal(Transport::Rc, {QpState::Reset, QpState::Init}, mask) ==
        "RESET->INIT: missing IBV_QP_ACCESS_FLAGS, IBV_QP_PORT, and does not take IBV_QP_QKEY, IBV_QP_SQ_PSN");
}

TEST_CASE("attributes have the man page's names, unknown bits their number", "[rc][qp_state]") {
  CHECK(names_of(0) == "");
  CHECK(names_of(attr_mask::kPathMtu | attr_mask::kDestQpn) == "IBV_QP_PATH_MTU, IBV_QP_DEST_QPN");
  CHECK(names_of(attr_mask::kCap | 1u << 30 | 1u << 21) == "IBV_QP_CAP, 0x40200000");
}

TEST_CASE("states have the IBTA's names", "[rc][qp_state]") {
  std::string names;
  for (QpState state : kAllStates) names += std::string(to_string(state)) + " ";
  CHECK(names == "RESET INIT RTR RTS SQD SQE ERR ");
}

}  // namespace
}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
#include "cm/event_names.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace nicless::cm {

const char* name_of(rdma_cm_event_type event) {
  // The last four are of rdma-core 60 and later.
  static constexpr std::array<const char*, 20> kNames{
      "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",        "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST",   "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",       "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",      "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR",   "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT",  "RDMA_CM_EVENT_ADDRINFO_RESOLVED", "RDMA_CM_EVENT_ADDRINFO_ERROR",
      "RDMA_CM_EVENT_USER",           "RDMA_CM_EVENT_INTERNAL"};
  const auto number = static_cast<std::size_t>(event);
  return number < kNames.size() ? kNames[number] : "UNKNOWN EVENT";
}

std::string reject_reason(int status) {
  const std::string number = "reason " + std::to_string(status);
  switch (status) {
    case 3:
      return number + ": the other side has no resources for it";
    case 4:
      return number + ": the other side gave up waiting, or is gone";
    case 6:
      return number + ": the other side knows nothing of the connection (any more)";
    case 8:
      return number + ": nobody listens there, or who does is in the other mode (--rocev2 or not)";
    case 9:
      return number + ": the queue pairs of the two ends are of different types";
    case 10:
      return number + ": the other side has an older connection with this queue pair, which ends now; try again";
    case 12:
      return number + ": no RDMA device of the other side has that address (`nicless devices` there lists them)";
    case 28:
      return number + ": the program there refused, or closed its listener or its id, or ended, before it stood";
    case 35:
      return number + ": the program there refused the vendor's options";
    default:
      return number + " (IBTA table 108)";
  }
}

std::string sidr_status(int status) {
  const std::string number = "status " + std::to_string(status);
  switch (status) {
    case 1:
      return number + ": nobody listens there, or who does is in the other mode (--rocev2 or not)";
    case 2:
      return number + ": the program there refused, or closed its listener or its id without an answer";
    case 3:
      return number + ": the service has no queue pair";
    default:
      return number + " (IBTA table 120)";
  }
}

std::string unreachable_why(int status) {
  if (status == -ETIMEDOUT) return "no answer came, however often it was asked";
  return std::string("this machine does not send there: ") + std::strerror(-status);
}

}  // namespace nicless::cm

// SPDX-License-Identifier: MIT
#include "tests/sim/request.h"

namespace nicless::sim {

using queue::WcStatus;

queue::WcStatus status_of(Mistake mistake) {
  switch (mistake) {
    case Mistake::None:
      return WcStatus::Success;
    case Mistake::BadLkey:
      return WcStatus::LocProtErr;
    case Mistake::BadRkey:
    case Mistake::NoRight:
      return WcStatus::RemAccessErr;
    case Mistake::Misaligned:
    case Mistake::TooLong:
      return WcStatus::RemInvReqErr;
    case Mistake::BadReceive:
      return WcStatus::RemOpErr;
  }
  return WcStatus::GeneralErr;
}

queue::WcStatus receive_status_of(Mistake mistake) {
  if (mistake == Mistake::TooLong) return WcStatus::LocLenErr;
  return mistake == Mistake::BadReceive ? WcStatus::LocProtErr : WcStatus::WrFlushErr;
}

}  // namespace nicless::sim

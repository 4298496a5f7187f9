// SPDX-License-Identifier: MIT
// The statuses that a completion in error can have, as words: for sentences, and for options that name one. Pure.
#pragma once

#include <array>
#include <string_view>

#include "queue/completion.h"

namespace nicless::queue {

struct WcStatusName {
  WcStatus status;
  std::string_view word;  // as IBV_WC_... has it
  std::string_view text;  // as ibv_wc_status_str(3) says it
};

inline constexpr std::array<WcStatusName, 16> kErrorStatusNames{{
    {WcStatus::LocLenErr, "LOC_LEN_ERR", "local length error"},
    {WcStatus::LocQpOpErr, "LOC_QP_OP_ERR", "local QP operation error"},
    {WcStatus::LocProtErr, "LOC_PROT_ERR", "local protection error"},
    {WcStatus::WrFlushErr, "WR_FLUSH_ERR", "Work Request Flushed Error"},
    {WcStatus::MwBindErr, "MW_BIND_ERR", "memory management operation error"},
    {WcStatus::BadRespErr, "BAD_RESP_ERR", "bad response error"},
    {WcStatus::LocAccessErr, "LOC_ACCESS_ERR", "local access error"},
    {WcStatus::RemInvReqErr, "REM_INV_REQ_ERR", "remote invalid request error"},
    {WcStatus::RemAccessErr, "REM_ACCESS_ERR", "remote access error"},
    {WcStatus::RemOpErr, "REM_OP_ERR", "remote operation error"},
    {WcStatus::RetryExcErr, "RETRY_EXC_ERR", "transport retry counter exceeded"},
    {WcStatus::RnrRetryExcErr, "RNR_RETRY_EXC_ERR", "RNR retry counter exceeded"},
    {WcStatus::RemInvRdReqErr, "REM_INV_RD_REQ_ERR", "remote invalid RD request"},
    {WcStatus::RemAbortErr, "REM_ABORT_ERR", "aborted error"},
    {WcStatus::FatalErr, "FATAL_ERR", "fatal error"},
    {WcStatus::GeneralErr, "GENERAL_ERR", "general error"},
}};

constexpr const char* word_of(WcStatus status) {
  for (const WcStatusName& name : kErrorStatusNames) {
    if (name.status == status) return name.word.data();
  }
  return "SUCCESS";
}

}  // namespace nicless::queue

// SPDX-License-Identifier: MIT
// What a port has counted, and the names that a person knows the counts by: those of Soft-RoCE where it has them
// (/sys/class/infiniband/rxe0/ports/1/hw_counters), else those of mlx5, else our own. Values that only grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace nicless::wire {

// Of an engine: datagrams, and why one was dropped before it reached a queue pair.
struct EngineCounters {
  std::uint64_t datagrams_in = 0;
  std::uint64_t datagrams_out = 0;
  std::uint64_t truncated = 0;
  std::uint64_t bad_version = 0;
  std::uint64_t unknown_opcode = 0;
  std::uint64_t bad_pad = 0;
  std::uint64_t bad_icrc = 0;
  std::uint64_t bad_pkey = 0;
  std::uint64_t unknown_qpn = 0;
  std::uint64_t bad_mad = 0;  // for QP 1, and not for a connection manager, or too many at once
  friend bool operator==(const EngineCounters&, const EngineCounters&) = default;
};

// Of a queue pair: packets that it dropped, and what reliable connections go through.
struct QpCounters {
  std::uint64_t wrong_source = 0;   // from another address than the peer's
  std::uint64_t wrong_state = 0;    // the state takes none of this kind
  std::uint64_t wrong_service = 0;  // of another transport than the queue pair's
  std::uint64_t wrong_qkey = 0;     // datagrams only
  std::uint64_t no_receive = 0;     // unreliable transports: nothing was posted for the message
  std::uint64_t lost_message = 0;   // unreliable connections: a packet of it was missing
  std::uint64_t late = 0;           // unreliable connections: a copy, or overtaken by what was sent after it
  std::uint64_t duplicate = 0;      // requests that were there already
  std::uint64_t out_of_sequence = 0;
  std::uint64_t rnr_sent = 0;
  std::uint64_t rnr_received = 0;
  std::uint64_t sequence_naks_received = 0;
  std::uint64_t resends = 0;  // times that sending went back
  std::uint64_t retries_exceeded = 0;
  std::uint64_t rnr_retries_exceeded = 0;
  friend bool operator==(const QpCounters&, const QpCounters&) = default;
};

template <typename Counters>
struct CounterName {
  const char* name;
  std::uint64_t Counters::*member;
};

inline constexpr CounterName<EngineCounters> kEngineCounterNames[] = {
    {"sent_pkts", &EngineCounters::datagrams_out},
    {"rcvd_pkts", &EngineCounters::datagrams_in},
    {"rx_icrc_encapsulated", &EngineCounters::bad_icrc},
    {"rx_truncated", &EngineCounters::truncated},
    {"rx_bad_version", &EngineCounters::bad_version},
    {"rx_unknown_opcode", &EngineCounters::unknown_opcode},
    {"rx_bad_pad", &EngineCounters::bad_pad},
    {"rx_bad_pkey", &EngineCounters::bad_pkey},
    {"rx_unknown_qpn", &EngineCounters::unknown_qpn},
    {"rx_bad_mad", &EngineCounters::bad_mad},
};

inline constexpr CounterName<QpCounters> kQpCounterNames[] = {
    {"duplicate_request", &QpCounters::duplicate},
    {"out_of_seq_request", &QpCounters::out_of_sequence},
    {"rcvd_rnr_err", &QpCounters::rnr_received},
    {"send_rnr_err", &QpCounters::rnr_sent},
    {"rcvd_seq_err", &QpCounters::sequence_naks_received},
    {"completer_retry_err", &QpCounters::resends},
    {"retry_exceeded_err", &QpCounters::retries_exceeded},
    {"retry_rnr_exceeded_err", &QpCounters::rnr_retries_exceeded},
    {"out_of_buffer", &QpCounters::no_receive},
    {"rx_wrong_source", &QpCounters::wrong_source},
    {"rx_wrong_state", &QpCounters::wrong_state},
    {"rx_wrong_service", &QpCounters::wrong_service},
    {"rx_wrong_qkey", &QpCounters::wrong_qkey},
    {"rx_lost_message", &QpCounters::lost_message},
    {"rx_late", &QpCounters::late},
};

static_assert(sizeof(EngineCounters) == std::size(kEngineCounterNames) * sizeof(std::uint64_t));
static_assert(sizeof(QpCounters) == std::size(kQpCounterNames) * sizeof(std::uint64_t));

inline void add(const EngineCounters& more, EngineCounters& to) {
  for (const auto& counter : kEngineCounterNames) to.*counter.member += more.*counter.member;
}
inline void add(const QpCounters& more, QpCounters& to) {
  for (const auto& counter : kQpCounterNames) to.*counter.member += more.*counter.member;
}

}  // namespace nicless::wire

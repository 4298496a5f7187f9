// SPDX-License-Identifier: MIT
// Memory regions behind their handles: ibv_reg_mr(3), ibv_alloc_null_mr(3), ibv_reg_dm_mr(3).
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "provider/device_memory.h"
#include "provider/pd_mr.h"
#include "provider/use_of.h"
#include "queue/memory_region.h"

namespace nicless::provider {

struct Mr {
  enum class Kind : std::uint8_t { Ordinary, Null, DeviceMemory };

  Mr(Pd& the_pd, Kind the_kind, queue::MemoryKeys keys, Dm* the_memory = nullptr) : kind(the_kind), memory(the_memory) {
    set_pd(the_pd);
    verbs.context = the_pd.verbs.context;
    verbs.lkey = keys.lkey.value();
    verbs.rkey = keys.rkey.value();
    verbs.handle = verbs.lkey;
  }
  void set_pd(Pd& the_pd) {
    pd.emplace(the_pd);
    verbs.pd = &the_pd.verbs;
  }

  ibv_mr verbs{};
  std::optional<PdChild> pd;  // there, always; ibv_rereg_mr changes it
  const Kind kind;
  const UseOf<Dm> memory;  // of DeviceMemory
};

inline Mr& mr_of(ibv_mr* mr) {
  return *reinterpret_cast<Mr*>(mr);
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
// Protection domains behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "provider/context.h"
#include "provider/thread_domain.h"

namespace nicless::provider {

struct Pd {
  explicit Pd(Context& the_context)
      : verbs{public_context(the_context), 0}, context(the_context), id(the_context.next_pd.fetch_add(1)) {
    verbs.handle = id.value();
  }
  // A parent domain (ibv_alloc_parent_domain(3)): stands for the protection domain, and keeps it and the thread domain.
  Pd(Pd& protection_domain, Td* the_thread_domain)
      : verbs{protection_domain.verbs},
        context(*protection_domain.context),
        id(protection_domain.id),
        protection(&protection_domain),
        thread_domain(the_thread_domain) {
    protection->children.fetch_add(1);
  }
  ~Pd() {
    if (protection != nullptr) protection->children.fetch_sub(1);
  }
  Pd(const Pd&) = delete;
  Pd& operator=(const Pd&) = delete;

  ibv_pd verbs;
  const ContextHold context;
  const queue::PdId id;
  Pd* const protection = nullptr;  // of a parent domain
  const UseOf<Td> thread_domain{nullptr};
  std::atomic<std::uint32_t> children{0};  // MRs, MWs, SRQs, QPs, AHs, parent domains
};

inline Pd& pd_of(ibv_pd* pd) {
  return *reinterpret_cast<Pd*>(pd);
}

// What belongs to a protection domain counts there.
class PdChild {
 public:
  explicit PdChild(Pd& pd) : PdChild(&pd) {}
  explicit PdChild(Pd* pd) : pd_(pd) {
    if (pd_ != nullptr) pd_->children.fetch_add(1);
  }
  ~PdChild() {
    if (pd_ != nullptr) pd_->children.fetch_sub(1);
  }
  PdChild(const PdChild&) = delete;
  PdChild& operator=(const PdChild&) = delete;
  Pd& operator*() const { return *pd_; }
  Pd* operator->() const { return pd_; }
  explicit operator bool() const { return pd_ != nullptr; }

 private:
  Pd* const pd_;
};

}  // namespace nicless::provider

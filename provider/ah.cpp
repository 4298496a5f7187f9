// SPDX-License-Identifier: MIT
#include <cerrno>
#include <memory>
#include <string>

#include "provider/objects.h"
#include "provider/path.h"
#include "provider/pd_mr.h"

namespace nicless::provider {
namespace {

struct Ah {
  Ah(Pd& the_pd, const wire::Path& the_path) : pd(the_pd), path(the_path) {
    verbs.context = pd->verbs.context;
    verbs.pd = &pd->verbs;
  }
  ibv_ah verbs{};
  const PdChild pd;
  const wire::Path path;
};

}  // namespace

Result<ibv_ah*> create_ah(ibv_pd* verbs, const ibv_ah_attr* attr) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  const auto path = path_of(device_of(verbs->context), *attr);
  if (!path) return path.error();
  return &std::make_unique<Ah>(pd, *path).release()->verbs;
}

Result<void> destroy_ah(ibv_ah* verbs) {
  Ah& ah = *reinterpret_cast<Ah*>(verbs);
  if (auto alive = ah.pd->context.check_alive(); !alive) return alive;
  delete &ah;
  return {};
}

}  // namespace nicless::provider

/* SPDX-License-Identifier: MIT */
/* libnicless_paths.so: answers libc's path functions about /dev/infiniband and /sys/class/infiniband*, and passes on
 * everything else. Preloaded by the launcher only, and asleep unless NICLESS_PATHS=1. See docs/adr.
 *
 * It is in every process of the program's tree, so: C, no runtime of its own, no constructor, one prefix check per
 * call, no lock and no allocation for paths that are not ours (safe in signal handlers and in children of vfork),
 * nothing that touches errno. */
#ifndef NICLESS_PROVIDER_PATHS_H
#define NICLESS_PROVIDER_PATHS_H

#include <limits.h>

/* Room for one answered path. */
struct nicless_path {
  char text[PATH_MAX];
};

/* The path to use in place of `path`: itself, or one written into `room` if it is one of ours. `path` may be NULL. */
const char* nicless_answer(const char* path, struct nicless_path* room);
/* True for the device nodes, which are links in the tree and no links to the program. */
int nicless_is_node(const char* path);

#endif

// SPDX-License-Identifier: MIT
// Gives a function a name and a version beside its own, where the version script cannot: the same name in several
// nodes, or a name that is not the default one. For the file that defines the function. See docs/ABI.md.
#pragma once

// Assembler directives: a version is no part of the language. The name is not the default one of its node's, so that
// nobody links to it by accident.
#define NICLESS_VERSION(function, name, node) asm(".symver " #function ", " name "@" node)
#define NICLESS_EVERY_RELEASE(function, name)            \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_25"); \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_33"); \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_34"); \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_57"); \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_59"); \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_64"); \
  NICLESS_VERSION(function, name, "IBVERBS_PRIVATE_65")

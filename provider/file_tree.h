// SPDX-License-Identifier: MIT
// The files that programs look for before and beside verbs: /dev/infiniband/uverbs0 (UCX wants a character device
// there) and /sys/class/infiniband*. They are answered from a small tree of our own in a temporary folder: docs/adr.
// What it holds is made from values here; making it is a function of its own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "provider/device.h"

namespace nicless::provider {

struct TreeFile {
  std::string path;      // below the root: "sys/class/infiniband/nicless0/node_type"
  std::string contents;  // or, for a link, where it leads
  bool is_link = false;
  friend bool operator==(const TreeFile&, const TreeFile&) = default;
};

std::vector<TreeFile> describe_tree(std::span<const std::unique_ptr<Device>> devices);

// The folder of this user's trees: in $XDG_RUNTIME_DIR, else $TMPDIR, else /tmp. Empty where none can be had, or where
// one of that name is not ours alone.
std::string private_folder();

// The path of a folder in `folder` that holds these files. Its name is a digest of them: processes that see the same
// devices share one, and a finished one never changes. Empty if it cannot be made.
std::string make_tree(const std::string& folder, std::span<const TreeFile> files);

}  // namespace nicless::provider

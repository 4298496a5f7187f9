// SPDX-License-Identifier: MIT
// The counters as files, where people and programs look for an adapter's: /sys/class/infiniband/nicless0/ports/1/
// hw_counters/. A process is an adapter of its own here, so a file tells what the process that opens it has counted,
// all its devices together; it is read anew at each open. Any thread.
#pragma once

#include <string>

#include "provider/file_tree.h"

namespace nicless::provider {

// Of an adapter that has done nothing: what the tree of files holds, below the folder of a port.
void describe_counters(const std::string& folder, std::vector<TreeFile>& files);

// A file that holds what the counter behind `path` counts now, or empty: it is none, or this process has counted
// nothing yet. Good until the next call about the same counter.
std::string counter_file(const std::string& path);

}  // namespace nicless::provider

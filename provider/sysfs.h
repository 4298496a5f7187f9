// SPDX-License-Identifier: MIT
// What programs read about the device in files: ibv_get_sysfs_path(), ibv_read_sysfs_file().
#pragma once

#include <cstddef>

#include "queue/result.h"

namespace nicless::provider {

// The folder that stands for /sys: in the tree of file_tree.h, or /sys itself where there is none. Lives as long as the
// process.
const char* sysfs_path();

// Reads folder/file without its last newline and ends it with a zero if there is room; how many bytes it took.
queue::Result<int> read_sysfs_file(const char* folder, const char* file, char* buffer, std::size_t size);

}  // namespace nicless::provider

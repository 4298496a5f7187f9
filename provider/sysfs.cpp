// SPDX-License-Identifier: MIT
#include "provider/sysfs.h"

#include <fcntl.h>

#include <string>

#include "provider/device.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::provider {

using wire::raw::call;

const char* sysfs_path() {
  static const std::string& path = *new std::string(std::string(file_tree() != nullptr ? file_tree() : "") + "/sys");
  return path.c_str();
}

Result<int> read_sysfs_file(const char* folder, const char* file, char* buffer, std::size_t size) {
  const std::string path = std::string(folder) + "/" + file;
  const int fd = static_cast<int>(call(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd < 0) return queue::error(-fd, path);
  auto length = static_cast<int>(call(SYS_read, fd, buffer, size));
  wire::raw::close(fd);
  if (length < 0) return queue::error(-length, path);
  if (length > 0 && buffer[length - 1] == '\n') --length;
  if (static_cast<std::size_t>(length) < size) buffer[length] = '\0';
  return length;
}

}  // namespace nicless::provider

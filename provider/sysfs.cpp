// SPDX-License-Identifier: MIT
#include "provider/sysfs.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace nicless::provider {

const char* sysfs_path() {
  return "/sys";
}

int read_sysfs_file(const char* folder, const char* file, char* buffer, std::size_t size) {
  const std::string path = std::string(folder) + "/" + file;
  const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd < 0) return -1;
  auto length = static_cast<int>(syscall(SYS_read, fd, buffer, size));
  const int error = errno;
  syscall(SYS_close, fd);
  errno = error;
  if (length <= 0) return length;
  if (buffer[length - 1] == '\n') --length;
  if (static_cast<std::size_t>(length) < size) buffer[length] = '\0';
  return length;
}

}  // namespace nicless::provider

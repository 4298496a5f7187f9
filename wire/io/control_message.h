// SPDX-License-Identifier: MIT
// Control messages of sendmsg(2) and recvmsg(2): appended one by one, or looked for by level and type.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <optional>

namespace nicless::wire {

// Appends to a buffer that is large enough for all that will be appended, aligned for cmsghdr.
class ControlWriter {
 public:
  explicit ControlWriter(msghdr& message) : message_(message) { message_.msg_controllen = 0; }

  template <typename T>
  void append(int level, int type, const T& value) {
    cmsghdr header{};
    header.cmsg_len = CMSG_LEN(sizeof value);
    header.cmsg_level = level;
    header.cmsg_type = type;
    char* const at = static_cast<char*>(message_.msg_control) + message_.msg_controllen;
    std::memset(at, 0, CMSG_SPACE(sizeof value));
    std::memcpy(at, &header, sizeof header);
    std::memcpy(at + CMSG_LEN(0), &value, sizeof value);
    message_.msg_controllen += CMSG_SPACE(sizeof value);
  }

 private:
  msghdr& message_;
};

template <typename T>
std::optional<T> find_control(msghdr& message, int level, int type) {
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != level || at->cmsg_type != type || at->cmsg_len < CMSG_LEN(sizeof(T))) continue;
    T value;
    std::memcpy(&value, CMSG_DATA(at), sizeof value);
    return value;
  }
  return std::nullopt;
}

}  // namespace nicless::wire

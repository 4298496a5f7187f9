// SPDX-License-Identifier: MIT
#include "provider/socket_buffer.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "provider/log.h"
#include "wire/io/udp_socket.h"

namespace nicless::provider {

queue::Result<int> socket_buffer_from(const char* text) {
  const std::string_view value = text == nullptr ? "" : text;
  if (value.empty()) return wire::SocketConfig{}.buffer_bytes;
  int bytes = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
  if (error != std::errc{} || end != value.data() + value.size() || bytes < 0) {
    return queue::error(EINVAL, "NICLESS_SOCKET_BUFFER=" + std::string(value) +
                                    " is no number of bytes: " + std::to_string(wire::SocketConfig{}.buffer_bytes) +
                                    ", the default, is asked for; 0 leaves socket buffers as the system makes them");
  }
  return bytes;
}

int socket_buffer_bytes() {
  static const int bytes = [] {
    const auto asked = socket_buffer_from(std::getenv("NICLESS_SOCKET_BUFFER"));
    if (asked) return *asked;
    log(NICLESS_LOG_ERROR, asked.error().why);
    return wire::SocketConfig{}.buffer_bytes;
  }();
  return bytes;
}

}  // namespace nicless::provider

// SPDX-License-Identifier: MIT
// Goal: NICLESS_SOCKET_BUFFER is a number of bytes or refused, never half-read. Method: texts in, values out.
#include "provider/socket_buffer.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "wire/io/udp_socket.h"

namespace nicless::provider {
namespace {

TEST_CASE("a number of bytes is taken, and 0 means the system's own buffers", "[socket_buffer]") {
  CHECK(*socket_buffer_from("0") == 0);
  CHECK(*socket_buffer_from("212992") == 212992);
  CHECK(*socket_buffer_from("2147483647") == 2147483647);
}

TEST_CASE("where nothing is asked for it is as much as the system allows", "[socket_buffer]") {
  CHECK(*socket_buffer_from(nullptr) == wire::SocketConfig{}.buffer_bytes);
  CHECK(*socket_buffer_from("") == wire::SocketConfig{}.buffer_bytes);
}

TEST_CASE("anything else is EINVAL, and the sentence says what is taken instead", "[socket_buffer]") {
  const auto* const text = GENERATE("4M", "-1", " 1", "1 ", "0x10", "2147483648", "default");
  const auto asked = socket_buffer_from(text);
  REQUIRE(!asked);
  CHECK(asked.error().errno_value == EINVAL);
  CHECK(asked.error().why == "NICLESS_SOCKET_BUFFER=" + std::string(text) +
                                 " is no number of bytes: 8388608, the default, is asked for; 0 leaves socket buffers "
                                 "as the system makes them");
}

}  // namespace
}  // namespace nicless::provider

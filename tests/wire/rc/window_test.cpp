// SPDX-License-Identifier: MIT
// Goal: the window grows on success, is cut once for one flight's losses, and never closes.
// Method: numbers in, packets out.
#include "wire/rc/window.h"

#include <catch2/catch.hpp>

using nicless::wire::Window;

TEST_CASE("a window starts small enough for a default socket buffer and grows up to its limit", "[rc][window]") {
  Window window(1024);
  CHECK(window.packets() == Window::kStartBytes / 1024);
  for (int i = 0; i < 100; ++i) window.on_acknowledged(16);
  CHECK(window.packets() == Window::kMaxBytes / 1024);
}

// Acknowledges full windows until it stops doubling, and returns how many packets it held then. One more by now.
static std::uint32_t limit_of(Window& window) {
  for (;;) {
    const std::uint32_t before = window.packets();
    window.on_acknowledged(before);
    if (window.packets() <= before + 1) return before;
  }
}

TEST_CASE("after a loss sending starts over with a few packets, up to half of what it was", "[rc][window]") {
  Window window(1024);
  const auto before = window.packets();
  window.on_loss(100, 164);
  CHECK(window.packets() == Window::kMinPackets);
  window.on_acknowledged(Window::kMinPackets);
  CHECK(window.packets() == 2 * Window::kMinPackets);
  CHECK(limit_of(window) == before / 2);
}

TEST_CASE("losses within one flight halve the limit once", "[rc][window]") {
  Window window(1024);
  const auto before = window.packets();
  window.on_loss(100, 164);
  window.on_loss(110, 164);
  window.on_loss(163, 170);
  CHECK(limit_of(window) == before / 2);
  window.on_loss(164, 200);
  CHECK(limit_of(window) == before / 4);
}

TEST_CASE("at its limit the window grows by one packet for each window acknowledged", "[rc][window]") {
  Window window(1024);
  window.on_loss(0, 64);
  const auto limit = limit_of(window);
  CHECK(window.packets() == limit + 1);
  window.on_acknowledged(limit + 1);
  CHECK(window.packets() == limit + 2);
}

TEST_CASE("no loss and no timeout closes the window", "[rc][window]") {
  Window window(4096);
  for (std::uint64_t psn = 0; psn < 100; ++psn) {
    window.on_loss(psn, psn);
    window.on_timeout();
  }
  CHECK(window.packets() == Window::kMinPackets);
  CHECK(window.packets_between_ack_requests() <= window.packets() / 2);
}

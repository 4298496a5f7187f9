// SPDX-License-Identifier: MIT
// Goal: the window grows on success, is cut once for one flight's losses, and never closes.
// Method: numbers in, packets out.
#include "wire/rc/window.h"

#include <catch2/catch.hpp>

using nicless::wire::Window;
using Loss = Window::Loss;

static constexpr std::uint32_t kMostBytes = 128 * 1024;
static constexpr std::uint32_t kAll = kMostBytes;  // a share that bounds nothing

TEST_CASE("a window starts small enough for a default socket buffer and grows up to its limit", "[rc][window]") {
  Window window(1024);
  CHECK(window.packets(kAll) == Window::kStartBytes / 1024);
  for (int i = 0; i < 100; ++i) window.on_acknowledged(16, kMostBytes);
  CHECK(window.packets(kAll) == kMostBytes / 1024);
}

TEST_CASE("a share of what a port may have in flight bounds a window, and is forgotten with it", "[rc][window]") {
  Window window(1024);
  CHECK(window.packets(16 * 1024) == 16);
  CHECK(window.packets(1024) == Window::kMinPackets);
  CHECK(window.packets(kAll) == Window::kStartBytes / 1024);
}

// Acknowledges full windows until it stops doubling, and returns how many packets it held then. One more by now.
static std::uint32_t limit_of(Window& window) {
  for (;;) {
    const std::uint32_t before = window.packets(kAll);
    window.on_acknowledged(before, kMostBytes);
    if (window.packets(kAll) <= before + 1) return before;
  }
}

TEST_CASE("after a loss sending starts over with a few packets, up to half of what it was", "[rc][window]") {
  Window window(1024);
  const auto before = window.packets(kAll);
  window.on_loss(100, 164, Loss::Crowd);
  CHECK(window.packets(kAll) == Window::kMinPackets);
  window.on_acknowledged(Window::kMinPackets, kMostBytes);
  CHECK(window.packets(kAll) == 2 * Window::kMinPackets);
  CHECK(limit_of(window) == before / 2);
}

TEST_CASE("losses within one flight halve the limit once", "[rc][window]") {
  Window window(1024);
  const auto before = window.packets(kAll);
  window.on_loss(100, 164, Loss::Crowd);
  window.on_loss(110, 164, Loss::Crowd);
  window.on_loss(163, 170, Loss::Crowd);
  CHECK(limit_of(window) == before / 2);
  window.on_loss(164, 200, Loss::Crowd);
  CHECK(limit_of(window) == before / 4);
}

TEST_CASE("at its limit the window grows by one packet for each window acknowledged", "[rc][window]") {
  Window window(1024);
  window.on_loss(0, 64, Loss::Crowd);
  const auto limit = limit_of(window);
  CHECK(window.packets(kAll) == limit + 1);
  window.on_acknowledged(limit + 1, kMostBytes);
  CHECK(window.packets(kAll) == limit + 2);
}

TEST_CASE("a loss where nothing queues leaves the limit and half of the window", "[rc][window]") {
  Window window(1024);
  const auto before = window.packets(kAll);
  window.on_loss(100, 164, Loss::Stray);
  CHECK(window.packets(kAll) == before / 2);
  CHECK(limit_of(window) == before);
}

TEST_CASE("a small window is larger after a loss where nothing queues", "[rc][window]") {
  Window window(1024);
  window.on_loss(100, 164, Loss::Crowd);
  CHECK(window.packets(kAll) == Window::kMinPackets);
  window.on_loss(164, 200, Loss::Stray);
  CHECK(window.packets(kAll) == Window::kStrayMinPackets);
  CHECK(limit_of(window) == Window::kStrayMinPackets);
}

TEST_CASE("no loss and no timeout closes the window", "[rc][window]") {
  Window window(4096);
  for (std::uint64_t psn = 0; psn < 100; ++psn) {
    window.on_loss(psn, psn, Loss::Crowd);
    window.on_timeout();
  }
  CHECK(window.packets(kAll) == Window::kMinPackets);
}

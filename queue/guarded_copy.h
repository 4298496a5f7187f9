// SPDX-License-Identifier: MIT
// Access to memory that a program registered and may have unmapped since: a copy that says so instead of a SIGSEGV. On
// hardware the pages of a region stay pinned; here nothing keeps them, and a program is free to munmap or mprotect what
// it registered (docs/adr/0009). Thread-safe.
//
// Works by a handler for SIGSEGV and SIGBUS, installed by arm_memory_guard() and never before. A fault that is not at
// the address and in the thread of one of the functions below goes to whom the signal belonged before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nicless::queue {

// At each registration: a program that installs a handler of its own takes the guard away until it registers again.
void arm_memory_guard();

// Runs `access` on `memory`; false if the memory could not be accessed as `access` wanted, which then ended half-way.
// It must neither hold a lock nor own anything: nothing is cleaned up.
bool run_guarded(std::span<const std::byte> memory, void (*access)(void*), void* argument);
template <typename F>
bool guarded(std::span<const std::byte> memory, F access) {
  return run_guarded(
      memory, [](void* body) { (*static_cast<F*>(body))(); }, &access);
}

// memcpy to registered memory, but the word that ends with the last byte is stored last and in one piece: programs wait
// for a message by polling its end. False: not writable, or not all of it.
bool copy_to(std::byte* to, std::span<const std::byte> bytes);
// memcpy from registered memory. False: not readable.
bool copy_from(std::span<const std::byte> from, std::byte* to);
// Whether each page of it can be read just now.
bool is_readable(std::span<const std::byte> memory);

}  // namespace nicless::queue

// SPDX-License-Identifier: MIT
// The numbers of the pcapng format in one place: its writer (pcapng.cpp) and its reader (capture.cpp) share them.
// draft-ietf-opsawg-pcapng, chapters 3 and 4.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nicless::wire::pcapng {

enum class BlockType : std::uint32_t { InterfaceDescription = 1, EnhancedPacket = 6, SectionHeader = 0x0a0d0d0a };

// What a code means depends on the block it stands in.
enum class Option : std::uint16_t {
  End = 0,
  Comment = 1,
  Hardware = 2,        // section header
  InterfaceName = 2,   // interface description
  PacketFlags = 2,     // enhanced packet
  Application = 4,     // section header
  TimeResolution = 9,  // interface description
};

inline constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
inline constexpr std::uint16_t kLinkTypeEthernet = 1;
inline constexpr std::uint16_t kLinkTypeRawIp = 101;

// The low two bits of the packet flags.
inline constexpr std::byte kInbound{1};
inline constexpr std::byte kOutbound{2};

inline constexpr std::uint16_t kShownPort = 4791;
inline constexpr std::uint16_t kShownSourcePortBits = 0xc000;

}  // namespace nicless::wire::pcapng

// SPDX-License-Identifier: MIT
// Socket options of UDP that are newer than the C library's header (linux/udp.h; udp(7)).
#pragma once

#include <netinet/udp.h>

#ifndef UDP_NO_CHECK6_TX
#define UDP_NO_CHECK6_TX 101
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

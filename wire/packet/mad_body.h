// SPDX-License-Identifier: MIT
// The 232 bytes behind the common header, one pair of functions for each message: where each field of IBTA 12.6 to
// 12.11 stands. For mad.cpp only.
#pragma once

#include "wire/packet/byte_io.h"
#include "wire/packet/mad.h"

namespace nicless::wire {

inline constexpr std::size_t kMadHeaderBytes = 24;
inline constexpr std::size_t kMadBodyBytes = CmMessage::kSize - kMadHeaderBytes;
using MadBodyReader = FixedReader<kMadBodyBytes>;
using MadBodyWriter = FixedWriter<kMadBodyBytes>;

void read(const MadBodyReader& r, CmReq& req);
void write(MadBodyWriter& w, const CmReq& req);
void read(const MadBodyReader& r, CmMra& mra);
void write(MadBodyWriter& w, const CmMra& mra);
void read(const MadBodyReader& r, CmRej& rej);
void write(MadBodyWriter& w, const CmRej& rej);
void read(const MadBodyReader& r, CmRep& rep);
void write(MadBodyWriter& w, const CmRep& rep);
void read(const MadBodyReader& r, CmRtu& rtu);
void write(MadBodyWriter& w, const CmRtu& rtu);
void read(const MadBodyReader& r, CmDreq& dreq);
void write(MadBodyWriter& w, const CmDreq& dreq);
void read(const MadBodyReader& r, CmDrep& drep);
void write(MadBodyWriter& w, const CmDrep& drep);
void read(const MadBodyReader& r, CmSidrReq& req);
void write(MadBodyWriter& w, const CmSidrReq& req);
void read(const MadBodyReader& r, CmSidrRep& rep);
void write(MadBodyWriter& w, const CmSidrRep& rep);
void read(const MadBodyReader& r, CmLap& lap);
void write(MadBodyWriter& w, const CmLap& lap);
void read(const MadBodyReader& r, CmApr& apr);
void write(MadBodyWriter& w, const CmApr& apr);

}  // namespace nicless::wire

// SPDX-License-Identifier: MIT
// Goal: a batch leaves as the datagrams that were put into it, whatever their sizes, joined by the kernel or not.
// Method: datagrams of mixed header, payload and pad sizes from one loopback socket to another; what arrives is
// compared byte by byte, and its ICRC is checked.
#include "wire/io/send_batch.h"

#include <poll.h>

#include <catch2/catch.hpp>

#include "wire/io/clock.h"
#include "wire/io/receive_batch.h"
#include "wire/packet/icrc.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

constexpr int kPatienceMs = 10000;

struct Shape {
  std::uint8_t opcode;
  std::size_t payload_bytes;
};

constexpr std::uint8_t kSendFirst = 0x00, kSendMiddle = 0x01, kSendLast = 0x02, kWriteFirst = 0x06;

void fill(const Shape& shape, std::uint32_t number, std::span<const std::byte> payload, OutDatagram& out) {
  Headers headers;
  headers.bth.opcode = shape.opcode;
  headers.bth.psn = Psn(number);
  headers.reth.address = number;
  out.span_count = 0;
  // In two pieces: a list of two entries.
  const std::size_t half = shape.payload_bytes / 2;
  if (half != 0) out.spans[out.span_count++] = payload.first(half);
  if (shape.payload_bytes != half) out.spans[out.span_count++] = payload.subspan(half, shape.payload_bytes - half);
  finish_headers(headers, out);
}

std::vector<std::byte> without_icrc(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end() - kIcrcBytes};
}

Gid loopback() {
  in_addr v4{};
  v4.s_addr = htonl(INADDR_LOOPBACK);
  return gid_of(v4);
}

}  // namespace

TEST_CASE("a batch arrives as it was put together, joined or not", "[send_batch]") {
  const std::vector<Shape> shapes = GENERATE(values<std::vector<Shape>>({
      std::vector<Shape>(16, {kSendMiddle, 4096}),
      std::vector<Shape>(60, {kSendMiddle, 256}),
      {{kWriteFirst, 4096}, {kSendMiddle, 4096}, {kSendMiddle, 4096}, {kSendLast, 1}},
      {{kSendMiddle, 1021}, {kSendMiddle, 1022}, {kSendMiddle, 1023}, {kSendMiddle, 1024}, {kSendLast, 7}},
      {{kSendLast, 1}, {kSendLast, 2}, {kSendLast, 3}, {kSendLast, 0}, {kSendFirst, 256}, {kSendLast, 5}},
  }));
  const bool can_segment = GENERATE(true, false);
  auto from = UdpSocket::open(any_address());
  auto to = UdpSocket::open(any_address());
  REQUIRE((from && to));
  if (!can_segment) from->stop_segmenting();
  std::vector<std::byte> payload(4096);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7);
  SendBatch out;
  std::vector<std::vector<std::byte>> sent;
  for (const Shape& shape : shapes) {
    OutDatagram& slot = out.slot();
    slot.from = {loopback(), from->port()};
    slot.to = {loopback(), to->port()};
    fill(shape, static_cast<std::uint32_t>(sent.size()), payload, slot);
    sent.push_back(without_icrc(to_bytes(slot)));
    out.keep();
  }

  out.send({*from}, now(), nullptr);

  CHECK(!out.take_refusal());
  ReceiveBatch in;
  std::vector<std::vector<std::byte>> received;
  bool are_good = true;
  while (received.size() < sent.size()) {
    pollfd waited{to->fd(), POLLIN, 0};
    REQUIRE(poll(&waited, 1, kPatienceMs) == 1);
    REQUIRE(in.receive(*to) > 0);
    for (InDatagram datagram; in.next(datagram);) {
      are_good = are_good && check_icrc(datagram).good;
      received.push_back(without_icrc(datagram.bytes));
    }
  }
  CHECK(received == sent);
  CHECK(are_good);
}

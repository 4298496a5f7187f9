// SPDX-License-Identifier: MIT
// Goal: no bytes from the network, and no capture file, crash the codec or come back other than they went. Method: the
// input is a datagram, a MAD and a capture file, one after the other; what decodes is encoded and decoded again.
// libFuzzer invents inputs (meson option `fuzz`); any build runs the corpus (corpus_runner.cpp).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "queue/check.h"
#include "wire/packet/capture.h"
#include "wire/packet/icrc.h"
#include "wire/packet/pcapng.h"
#include "wire/packet/print.h"

using namespace nicless::wire;

namespace {

using Bytes = std::span<const std::byte>;

Endpoint endpoint(bool is_ipv4, std::uint16_t port) {
  Endpoint endpoint;
  if (is_ipv4) endpoint.address.bytes[10] = endpoint.address.bytes[11] = std::byte{0xff};
  endpoint.address.bytes[15] = std::byte{1};
  endpoint.port = port;
  return endpoint;
}

// Sealed anew, a packet decodes to the same values and its ICRC is good.
void check_packet(const PacketView& packet, const Endpoint& from, const Endpoint& to) {
  OutDatagram out;
  out.from = from;
  out.to = to;
  out.spans[0] = packet.payload;
  out.span_count = 1;
  finish_headers(packet.headers, out);
  const auto ip_id = static_cast<std::uint16_t>(packet.headers.bth.psn.value());
  seal(out, ip_id);
  const std::vector<std::byte> bytes = to_bytes(out);
  const Decoded again = decode(bytes);
  NICLESS_CHECK(again && again.packet.headers == packet.headers);
  NICLESS_CHECK(std::ranges::equal(again.packet.payload, packet.payload));
  const IcrcCheck check = check_icrc({bytes, from, to});
  NICLESS_CHECK(check.good && check.ip_id == (to.address.is_ipv4() ? ip_id : 0));
}

// A trace keeps the datagram, but for the ICRC that covers the ports it shows.
void check_trace(Bytes input, const Endpoint& from, const Endpoint& to) {
  std::vector<std::byte> file;
  append_pcapng_start(file);
  append_pcapng({.unix_time_ns = 1, .from = from, .to = to, .bytes = input}, file);
  auto reader = CaptureReader::open(file);
  NICLESS_CHECK(reader);
  const auto frame = reader->next();
  NICLESS_CHECK(frame);
  const auto shown = find_datagram(*frame);
  NICLESS_CHECK(shown && shown->bytes.size() == input.size());
  const CapturedDatagram datagram = with_true_ports(*shown, frame->comment);
  NICLESS_CHECK(datagram.from == from && datagram.to == to);
  const IcrcCheck check = check_icrc({shown->bytes, shown->from, shown->to});
  NICLESS_CHECK(check_icrc({input, from, to}).good == (check.good && check.ip_id == shown->ip_id));
}

void check_datagram(Bytes input, bool is_ipv4) {
  const Endpoint from = endpoint(is_ipv4, 40001), to = endpoint(is_ipv4, 40002);
  const IcrcCheck check = check_icrc({input, from, to});
  if (check.good) {
    std::byte icrc[kIcrcBytes];
    store_icrc(compute_icrc({input, from, to}, check.ip_id), icrc);
    NICLESS_CHECK(std::ranges::equal(icrc, input.last(kIcrcBytes)));
  }
  NICLESS_CHECK(!datagram_to_string(input, from, to).empty());
  const Decoded decoded = decode(input);
  if (decoded) check_packet(decoded.packet, from, to);
  if (input.size() <= 4096) check_trace(input, from, to);
}

void check_mad(std::span<const std::byte, CmMessage::kSize> input) {
  const DecodedCm decoded = decode_cm(input);
  NICLESS_CHECK(!std::string(describe(decoded.error)).empty());
  if (!decoded) return;
  NICLESS_CHECK(!to_string(decoded.message).empty());
  const DecodedCm again = decode_cm(encode(decoded.message));
  NICLESS_CHECK(again && again.message == decoded.message);
}

void walk_capture(Bytes input) {
  auto reader = CaptureReader::open(input);
  if (!reader) return;
  while (const auto frame = reader->next()) {
    const auto datagram = find_datagram(*frame);
    if (datagram) with_true_ports(*datagram, frame->comment);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes input = std::as_bytes(std::span(data, size));
  check_datagram(input, true);
  check_datagram(input, false);
  if (size >= CmMessage::kSize) check_mad(input.first<CmMessage::kSize>());
  walk_capture(input);
  return 0;
}

// SPDX-License-Identifier: MIT
// Goal: in the kernel's place we do what the kernel's Soft-RoCE did: the same requests get the same responses, the same
// work requests become the same requests, opcode by opcode, with the same PSNs, syndromes and MSNs; and what differs
// has a name here and a row in docs/WIRE.md. Method: each capture of tests/golden that has connections or datagrams in
// it is taken apart into flows, and each flow is played to our responder and to our requester.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/queue/print.h"
#include "tests/sim/golden_player.h"

namespace nicless::sim {
namespace {

using queue::WcStatus;

const std::vector<std::string> kFaultless{"ibv_rc_pingpong",
                                          "ibv_rc_pingpong-ipv6",
                                          "ibv_rc_pingpong-mtu256",
                                          "ibv_rc_pingpong-small-events",
                                          "ibv_srq_pingpong",
                                          "ibv_uc_pingpong",
                                          "ibv_ud_pingpong",
                                          "ibv_ud_pingpong-ipv6",
                                          "ib_send_lat",
                                          "ib_send_lat-I0",
                                          "ib_send_lat-cm",
                                          "ib_send_lat-ud",
                                          "ib_send_bw",
                                          "ib_write_lat",
                                          "ib_write_lat-3000",
                                          "ib_write_lat-uc",
                                          "ib_write_bw",
                                          "ib_read_lat",
                                          "ib_read_bw",
                                          "ib_atomic_lat-cas",
                                          "ib_atomic_lat-fadd",
                                          "rping-C2",
                                          "rping-C2-ipv6",
                                          "rping-S3000",
                                          "rdma_server_client",
                                          "ucmatose",
                                          "ucmatose-c2",
                                          "udaddy",
                                          "udaddy-ipv6",
                                          "rxt-ops",
                                          "rxt-ops-ipv6",
                                          "rxt-tos",
                                          "rxt-ps-ib-rc",
                                          "rxt-acktimeout",
                                          "rnr-late-recv",
                                          "rnr-late-recv-timer12"};
const std::vector<std::string> kFailing{"retry-exceeded",  "rnr-exceeded",    "nak-badkey-64",
                                        "nak-badkey-3000", "nak-badrange-64", "nak-badread-64",
                                        "nak-big",         "nak-sendinv-64",  "rxt-mw-sendinv"};
const std::vector<std::string> kFaulty{"loss-client-tx", "loss-server-tx", "duplicate-client-tx", "reorder-client-tx"};

// A difference that is meant: the lines it explains contain all of `words`. name: its row in docs/WIRE.md.
struct Explained {
  std::string file;
  std::string name;
  std::vector<std::string> words;
};

const std::vector<Explained> kOfResponses{
    {"nak-big", "too long", {"- RC_ACK", "syndrome=63"}},
    {"nak-big", "too long", {"+ RC_ACK", "syndrome=61"}},
    {"loss-server-tx", "lost before the capture", {"+ "}},
    {"loss-server-tx", "resumed read", {"- RC_READ_RESP_MIDDLE psn=9beba8"}},
    {"nak-sendinv-64", "invalidating a region", {"- RC_ACK psn=65cace syndrome=1f msn=1"}},
    {"nak-sendinv-64", "invalidating a region", {"+ RC_ACK psn=65cace syndrome=62 msn=1"}},
    {"retry-exceeded", "lost before the capture", {"+ RC_ACK psn=7212c3"}},
    {"reorder-client-tx", "another NAK", {"+ RC_ACK", "syndrome=60"}},
};
const std::vector<Explained> kOfRequests{
    {"ib_write_lat", "sent again", {"- RC_WRITE_ONLY psn=ca12b3"}},
    {"ib_write_lat-3000", "last packet once more", {"- RC_WRITE_FIRST psn=7fef7c"}},
    {"ib_write_lat-3000", "last packet once more", {"- RC_WRITE_MIDDLE psn=7fef7d"}},
    {"ib_write_lat-3000", "last packet once more", {"+ RC_WRITE_LAST psn=7fef7e"}},
    {"nak-big", "asked on the way", {" RC_SEND_MIDDLE psn=880ff4"}},
};

bool explains(const Explained& explained, const std::string& file, const std::string& line) {
  return explained.file == file && std::all_of(explained.words.begin(), explained.words.end(),
                                               [&](const auto& word) { return line.find(word) != std::string::npos; });
}

// Nothing differs but what is explained, and every explanation is still needed.
void check_explained(const std::string& file, const std::vector<std::string>& lines,
                     const std::vector<Explained>& table) {
  std::vector<std::string> unexplained;
  for (const std::string& line : lines) {
    const bool is_explained = std::any_of(table.begin(), table.end(),
                                          [&](const Explained& explained) { return explains(explained, file, line); });
    if (!is_explained) unexplained.push_back(line);
  }
  CHECK(unexplained == std::vector<std::string>{});
  for (const Explained& explained : table) {
    if (explained.file != file) continue;
    INFO("no longer needed: " << explained.name);
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [&](const std::string& line) { return explains(explained, file, line); }));
  }
}

std::vector<std::string> all_files() {
  std::vector<std::string> files = kFaultless;
  files.insert(files.end(), kFailing.begin(), kFailing.end());
  files.insert(files.end(), kFaulty.begin(), kFaulty.end());
  return files;
}

TEST_CASE("our responder answers the kernel's requests as the kernel's did, or the difference has a name", "[golden]") {
  const std::string file = GENERATE(from_range(all_files()));
  std::vector<std::string> lines;
  const auto flows = golden_flows(file);
  REQUIRE(!flows.empty());
  for (const GoldenFlow& flow : flows) {
    const auto differing = difference(flow.responses(), ResponderPlayer(flow).play());
    lines.insert(lines.end(), differing.begin(), differing.end());
  }
  INFO(file);
  check_explained(file, lines, kOfResponses);
}

TEST_CASE("our requester sends what the kernel's sent, or the difference has a name", "[golden]") {
  std::vector<std::string> files = kFaultless;
  files.insert(files.end(), kFailing.begin(), kFailing.end());
  const std::string file = GENERATE_COPY(from_range(files));
  std::vector<std::string> lines;
  for (const GoldenFlow& flow : golden_flows(file)) {
    RequesterPlayer player(flow);
    const auto differing = difference(flow.requests(), player.play());
    lines.insert(lines.end(), differing.begin(), differing.end());
    if (std::count(kFaultless.begin(), kFaultless.end(), file) == 0) continue;
    CHECK(player.completed().size() == player.messages());
    for (const Wc& wc : player.completed()) CHECK(wc.status == WcStatus::Success);
  }
  INFO(file);
  check_explained(file, lines, kOfRequests);
}

// The lines but for what a smaller window asks on the way, and for reads, which are resumed where they stood.
std::set<std::string> kinds_of(const std::vector<std::string>& lines) {
  std::set<std::string> kinds;
  for (std::string line : lines) {
    if (line.starts_with("RC_READ_REQ")) continue;
    if (const auto at = line.find(" ack_req"); at != std::string::npos) line.erase(at, 8);
    kinds.insert(line);
  }
  return kinds;
}

TEST_CASE("where packets were lost, doubled or overtaken, the same ones go out, and all completes", "[golden]") {
  const std::string file = GENERATE(from_range(kFaulty));
  for (const GoldenFlow& flow : golden_flows(file)) {
    RequesterPlayer player(flow);
    const bool is_lossy = file.starts_with("loss");
    CHECK(kinds_of(player.play(!is_lossy)) == kinds_of(flow.requests()));
    CHECK(player.completed().size() == player.messages());
    for (const Wc& wc : player.completed()) CHECK(wc.status == WcStatus::Success);
  }
}

TEST_CASE("what failed at the kernel's requester fails at ours with the same status", "[golden]") {
  const auto [file, status] = GENERATE(table<std::string, WcStatus>({{"nak-badkey-64", WcStatus::RemAccessErr},
                                                                     {"nak-badkey-3000", WcStatus::RemAccessErr},
                                                                     {"nak-badrange-64", WcStatus::RemAccessErr},
                                                                     {"nak-badread-64", WcStatus::RemAccessErr},
                                                                     {"nak-big", WcStatus::RemOpErr},
                                                                     {"rnr-exceeded", WcStatus::RnrRetryExcErr},
                                                                     {"retry-exceeded", WcStatus::RetryExcErr}}));
  INFO(file);
  const auto flows = golden_flows(file);
  REQUIRE(flows.size() == 1);
  RequesterPlayer player(flows[0], {.retry_cnt = 2, .rnr_retry = 3});
  player.play();
  player.give_up();
  REQUIRE(player.completed().size() == player.messages());
  CHECK(player.completed().back().status == status);
}

TEST_CASE("what reached the kernel's receives reaches ours", "[golden]") {
  const auto [file, messages] = GENERATE(table<std::string, std::size_t>({{"ibv_uc_pingpong", 6},
                                                                          {"ibv_ud_pingpong", 6},
                                                                          {"ibv_ud_pingpong-ipv6", 4},
                                                                          {"ib_send_lat-ud", 10},
                                                                          {"rxt-ops", 19},
                                                                          {"loss-client-tx", 7},
                                                                          {"reorder-client-tx", 6}}));
  std::size_t received = 0;
  for (const GoldenFlow& flow : golden_flows(file)) {
    ResponderPlayer player(flow);
    player.play();
    for (const Wc& wc : player.received()) received += wc.status == WcStatus::Success;
  }
  INFO(file);
  CHECK(received == messages);
}

}  // namespace
}  // namespace nicless::sim

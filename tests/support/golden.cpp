// SPDX-License-Identifier: MIT
#include "tests/support/golden.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ios>
#include <sstream>
#include <stdexcept>

#include "tests/support/bytes.h"

namespace nicless::test {
namespace {

GoldenPacket parse(const std::string& where, const std::string& words, const std::string& addresses,
                   const std::string& bytes) {
  std::istringstream in(addresses);
  std::string from, to;
  GoldenPacket packet;
  in >> from >> packet.from.port >> to >> packet.to.port >> std::hex >> packet.ip_id;
  if (!in || !words.starts_with("# ")) throw std::runtime_error(where + ": not a golden packet");
  packet.where = where;
  packet.words = words.substr(2);
  packet.from.address = gid_of(from);
  packet.to.address = gid_of(to);
  packet.bytes = bytes_of(bytes);
  return packet;
}

void read_file(const std::filesystem::path& path, std::vector<GoldenPacket>& packets) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  std::string words, addresses, bytes;
  for (int line = 1; std::getline(in, words); line += 3) {
    std::getline(in, addresses);
    std::getline(in, bytes);
    packets.push_back(parse(path.filename().string() + ":" + std::to_string(line), words, addresses, bytes));
  }
}

const std::filesystem::path kFolder = std::filesystem::path(TEST_DATA_DIR) / "golden";

}  // namespace

std::vector<GoldenPacket> golden_packets() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".hex") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  std::vector<GoldenPacket> packets;
  for (const auto& path : paths) read_file(path, packets);
  return packets;
}

std::vector<GoldenPacket> golden_packets(const std::string& name) {
  std::vector<GoldenPacket> packets;
  read_file(kFolder / (name + ".hex"), packets);
  return packets;
}

}  // namespace nicless::test

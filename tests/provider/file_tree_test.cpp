// SPDX-License-Identifier: MIT
// Goal: the files about a device say what verbs say, appear whole or not at all, and are written once for all processes
// that see the same devices; a folder that somebody else could have prepared is not used.
// Method: trees in a folder of the test's own; a device made by hand.
#include "provider/file_tree.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace nicless;
using namespace nicless::provider;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  Folder() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/nicless-test-XXXXXX";
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::unique_ptr<Device>> one_device() {
  std::vector<std::unique_ptr<Device>> devices(1);
  devices[0] = std::make_unique<Device>();
  Device& device = *devices[0];
  std::string("nicless0").copy(device.verbs.name, sizeof device.verbs.name - 1);
  std::string("uverbs0").copy(device.verbs.dev_name, sizeof device.verbs.dev_name - 1);
  device.guid = 0x02bd39fffecf1971;
  GidEntry entry{{}, 1};
  entry.gid.bytes[10] = entry.gid.bytes[11] = std::byte{0xff};
  entry.gid.bytes[12] = std::byte{10};
  entry.gid.bytes[15] = std::byte{2};
  device.gids = {entry, entry};
  return devices;
}

}  // namespace

TEST_CASE("a tree tells of a device what verbs tell", "[provider][files]") {
  const Folder folder;
  const std::string root = make_tree(folder.path(), describe_tree(one_device()));
  REQUIRE_FALSE(root.empty());
  const std::string device = root + "/sys/class/infiniband/nicless0/";
  CHECK(text_of(device + "node_type") == "1: CA\n");
  CHECK(text_of(device + "node_guid") == "02bd:39ff:fecf:1971\n");
  CHECK(text_of(device + "device/net/lo/ifindex") == "1\n");
  CHECK(text_of(device + "ports/1/state") == "4: ACTIVE\n");
  CHECK(text_of(device + "ports/1/link_layer") == "Ethernet\n");
  CHECK(text_of(device + "ports/1/gids/0") == "0000:0000:0000:0000:0000:ffff:0a00:0002\n");
  CHECK(text_of(device + "ports/1/gid_attrs/types/0") == "RoCE v2\n");
  CHECK(text_of(device + "ports/1/gid_attrs/ndevs/0") == "lo\n");
  CHECK(text_of(root + "/sys/class/infiniband_verbs/uverbs0/ibdev") == "nicless0\n");
  CHECK(fs::is_character_file(root + "/dev/infiniband/uverbs0"));
  CHECK(fs::is_character_file(root + "/dev/infiniband/rdma_cm"));
}

TEST_CASE("the same devices share a tree, others have another", "[provider][files]") {
  const Folder folder;
  const auto files = describe_tree(one_device());
  const std::string root = make_tree(folder.path(), files);
  CHECK(make_tree(folder.path(), files) == root);
  auto other = one_device();
  other[0]->gids.clear();
  CHECK(make_tree(folder.path(), describe_tree(other)) != root);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
}

TEST_CASE("a tree that cannot be made leaves nothing behind", "[provider][files]") {
  const Folder folder;
  CHECK(make_tree("", describe_tree(one_device())).empty());
  CHECK(make_tree(folder.path() + "/nowhere", describe_tree(one_device())).empty());
  const std::vector<TreeFile> clash{{"a", "1"}, {"a/b", "2"}};
  CHECK(make_tree(folder.path(), clash).empty());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("the private folder is the user's own and closed to others", "[provider][files]") {
  const Folder folder;
  const std::string name = folder.path() + "/nicless-" + std::to_string(geteuid());
  setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
  SECTION("it is made") {
    CHECK(private_folder() == name);
    struct stat status {};
    REQUIRE(stat(name.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    CHECK(private_folder() == name);
  }
  SECTION("one that others may write to is not used") {
    REQUIRE(mkdir(name.c_str(), 0700) == 0);
    REQUIRE(chmod(name.c_str(), 0777) == 0);
    CHECK(private_folder() != name);
  }
  SECTION("a link to somewhere else is not used") {
    REQUIRE(symlink("/tmp", name.c_str()) == 0);
    CHECK(private_folder() != name);
  }
  SECTION("a relative path is not used") {
    setenv("XDG_RUNTIME_DIR", ".", 1);
    CHECK(private_folder().front() == '/');
  }
  unsetenv("XDG_RUNTIME_DIR");
}

// SPDX-License-Identifier: MIT
#include "tests/provider/bad_input/bench.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace nicless::test {
namespace {

constexpr const char* kPrefix = "nicless: ";

// Before the first call of the library, which reads it once.
const bool kIsLogged = setenv("NICLESS_LOG", "warn", 1) == 0;

std::string status_name(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "SUCCESS";
    case IBV_WC_LOC_LEN_ERR:
      return "LOC_LEN_ERR";
    case IBV_WC_LOC_QP_OP_ERR:
      return "LOC_QP_OP_ERR";
    case IBV_WC_LOC_PROT_ERR:
      return "LOC_PROT_ERR";
    case IBV_WC_WR_FLUSH_ERR:
      return "WR_FLUSH_ERR";
    case IBV_WC_REM_INV_REQ_ERR:
      return "REM_INV_REQ_ERR";
    case IBV_WC_REM_ACCESS_ERR:
      return "REM_ACCESS_ERR";
    case IBV_WC_REM_OP_ERR:
      return "REM_OP_ERR";
    case IBV_WC_RETRY_EXC_ERR:
      return "RETRY_EXC_ERR";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "RNR_RETRY_EXC_ERR";
    default:
      return std::to_string(static_cast<int>(status));
  }
}

std::string hex(std::uint64_t number) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

std::string own_address_text(ibv_context* context) {
  ibv_gid gid{};
  REQUIRE(ibv_query_gid(context, 1, 0, &gid) == 0);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto* const address = reinterpret_cast<const in6_addr*>(gid.raw);
  const bool is_ipv4 = IN6_IS_ADDR_V4MAPPED(address);
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? &gid.raw[12] : &gid.raw[0], text.data(), text.size());
  return text.data();
}

}  // namespace

Hearing::Hearing() : memory_(memfd_create("sentences", MFD_CLOEXEC)), stderr_(dup(STDERR_FILENO)) {
  REQUIRE(kIsLogged);
  REQUIRE(memory_ >= 0);
  REQUIRE(dup2(memory_, STDERR_FILENO) == STDERR_FILENO);
}

Hearing::~Hearing() {
  dup2(stderr_, STDERR_FILENO);
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kPrefix, 0) != 0) std::fprintf(stderr, "%s\n", line.c_str());
  }
  close(stderr_);
  close(memory_);
}

std::string Hearing::text() const {
  std::string all(static_cast<std::size_t>(lseek(memory_, 0, SEEK_END)), '\0');
  const ssize_t count = pread(memory_, all.data(), all.size(), 0);
  all.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return all;
}

std::vector<std::string> Hearing::sentences() const {
  std::vector<std::string> found;
  std::istringstream lines(text());
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(kPrefix, 0) == 0) found.push_back(line.substr(std::strlen(kPrefix)));
  }
  return found;
}

ibv_qp_init_attr attr_of(Bench& bench, ibv_qp_type type) {
  ibv_qp_init_attr attr = rc_attr(bench.send_cq.cq, bench.recv_cq.cq);
  attr.cap = {4, 4, 4, 4, 64};
  attr.qp_type = type;
  return attr;
}

Bench::Bench(Names& the_names) : names(the_names), a(device, attr_of(*this)), b(device, attr_of(*this)) {
  connect(a, b.qp->qp_num, {});
  connect(b, a.qp->qp_num, {});
  names.add("a", a.qp->qp_num);
  names.add("b", b.qp->qp_num);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(device.context, 1, &port) == 0);
  names.add("MTU", "MTU of " + std::to_string(128u << port.active_mtu));
  names.add("own address", own_address_text(device.context));
}

std::string Bench::completions(int sends, int receives) {
  std::string all;
  for (int i = 0; i < sends; ++i) all += (all.empty() ? "send " : ", send ") + status_name(send_cq.take().status);
  for (int i = 0; i < receives; ++i) all += (all.empty() ? "recv " : ", recv ") + status_name(recv_cq.take().status);
  return all;
}

void Names::add(const std::string& name, std::uint64_t number) {
  add(name, hex(number));
}

void Names::add(const std::string& name, const std::string& text) {
  names_[text] = "{" + name + "}";
}

// Longer numbers first, as a short one may be the beginning of another.
std::string Names::in(std::string sentence) const {
  for (auto named = names_.rbegin(); named != names_.rend(); ++named) {
    const auto& [number, name] = *named;
    for (std::size_t at = sentence.find(number); at != std::string::npos; at = sentence.find(number, at + 1)) {
      const std::size_t behind = at + number.size();
      if (behind == sentence.size() || std::isxdigit(static_cast<unsigned char>(sentence[behind])) == 0) {
        sentence.replace(at, number.size(), name);
      }
    }
  }
  return sentence;
}

int Bench::post_remote(Qp& from, ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t rkey,
                       std::uint32_t length) {
  ibv_sge list = memory.sge(0, length);
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic = {.remote_addr = address, .compare_add = 1, .swap = 0, .rkey = rkey};
  } else {
    wr.wr.rdma = {.remote_addr = address, .rkey = rkey};
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(from.qp, &wr, &bad);
}

std::string Bench::errno_name(int number) {
  return number == 0 ? "accepted" : strerrorname_np(number);
}

std::string Bench::refusal(const void* made) {
  return made != nullptr ? "made" : errno_name(errno);
}

void connect(Qp& from, std::uint32_t to, const Ways& ways) {
  ibv_qp_attr attr{};
  attr.port_num = 1;
  attr.qp_access_flags = ways.access;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = to;
  attr.max_dest_rd_atomic = ways.max_dest_rd_atomic;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  REQUIRE(ibv_query_gid(from.device.context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
  attr.timeout = ways.timeout;
  attr.retry_cnt = ways.retry_cnt;
  attr.rnr_retry = ways.rnr_retry;
  attr.max_rd_atomic = 4;
  const bool is_reliable = from.qp->qp_type == IBV_QPT_RC;
  const int rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const int rtr_of_reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  const int rts_of_reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  attr.qp_state = IBV_QPS_INIT;
  REQUIRE(ibv_modify_qp(from.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
  attr.qp_state = IBV_QPS_RTR;
  REQUIRE(ibv_modify_qp(from.qp, &attr, IBV_QP_STATE | rtr | (is_reliable ? rtr_of_reliable : 0)) == 0);
  attr.qp_state = IBV_QPS_RTS;
  REQUIRE(ibv_modify_qp(from.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (is_reliable ? rts_of_reliable : 0)) == 0);
}

}  // namespace nicless::test

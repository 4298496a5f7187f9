// SPDX-License-Identifier: MIT
#include <cinttypes>

#include "wire/packet/print.h"
#include "wire/packet/text.h"

namespace nicless::wire {
namespace {

template <typename Body>
void append_ids(std::string& text, const Body& body) {
  append(text, " lcid=%08x rcid=%08x", body.local_id.value(), body.remote_id.value());
}

// Without the zeros that fill it up.
void append_padded(std::string& text, const char* name, std::span<const std::byte> data) {
  while (!data.empty() && data.back() == std::byte{0}) data = data.first(data.size() - 1);
  append(text, " %s=", name);
  append_hex(text, data);
}

template <typename Request>
void append_request_data(std::string& text, const Request& request) {
  const std::optional<CmaHeader> cma = request.cma();
  if (cma) {
    append(text, " cma[ipv=%d sport=%d src=%s dst=%s]", cma->ip_version, cma->source_port,
           to_string(cma->source).c_str(), to_string(cma->destination).c_str());
  }
  append_padded(text, "pd", cma ? request.user_data() : std::span<const std::byte>(request.private_data));
}

void append_path(std::string& text, const CmPath& path) {
  append(text, " sgid=%s dgid=%s", to_string(path.local_gid).c_str(), to_string(path.remote_gid).c_str());
  append(text, " flow_label=%05x tc=%d hop=%d sl=%d ack_to=%d", path.flow_label, path.traffic_class, path.hop_limit,
         path.service_level, path.ack_timeout);
}

void append_body(std::string& text, const CmReq& req) {
  append(text, " lcid=%08x sid=%016" PRIx64 " guid=%016" PRIx64 " qkey=%08x qpn=%06x", req.local_id.value(),
         req.service.value(), req.local_ca_guid, req.local_qkey, req.local_qpn.value());
  append(text, " resp_res=%d init_depth=%d rem_cm_to=%d tst=%d flow=%d psn=%06x loc_cm_to=%d retry=%d",
         req.responder_resources, req.initiator_depth, req.remote_response_timeout, static_cast<int>(req.transport),
         req.flow_control, req.starting_psn.value(), req.local_response_timeout, req.retry_count);
  append(text, " pkey=%04x mtu=%d rnr=%d max_cm_retries=%d srq=%d", req.pkey, req.path_mtu, req.rnr_retry_count,
         req.max_cm_retries, req.srq);
  append_path(text, req.primary);
  append_request_data(text, req);
}

void append_body(std::string& text, const CmMra& mra) {
  append_ids(text, mra);
  append(text, " msg_mraed=%d service_to=%d", static_cast<int>(mra.answered), mra.service_timeout);
  append_padded(text, "pd", mra.private_data);
}

void append_body(std::string& text, const CmRej& rej) {
  append_ids(text, rej);
  append(text, " msg_rejected=%d info_len=%d reason=%d", static_cast<int>(rej.answered), rej.info_bytes,
         static_cast<int>(rej.reason));
  append_padded(text, "ari", rej.info);
  append_padded(text, "pd", rej.private_data);
}

void append_body(std::string& text, const CmRep& rep) {
  append_ids(text, rep);
  append(text, " qkey=%08x qpn=%06x eecn=%06x psn=%06x resp_res=%d init_depth=%d", rep.local_qkey,
         rep.local_qpn.value(), rep.local_eecn, rep.starting_psn.value(), rep.responder_resources, rep.initiator_depth);
  append(text, " tgt_ack_delay=%d failover=%d flow=%d rnr=%d srq=%d guid=%016" PRIx64, rep.target_ack_delay,
         rep.failover_accepted, rep.flow_control, rep.rnr_retry_count, rep.srq, rep.local_ca_guid);
  append_padded(text, "pd", rep.private_data);
}

void append_body(std::string& text, const CmRtu& rtu) {
  append_ids(text, rtu);
  append_padded(text, "pd", rtu.private_data);
}

void append_body(std::string& text, const CmDreq& dreq) {
  append_ids(text, dreq);
  append(text, " remote_qpn=%06x", dreq.remote_qpn.value());
  append_padded(text, "pd", dreq.private_data);
}

void append_body(std::string& text, const CmDrep& drep) {
  append_ids(text, drep);
  append_padded(text, "pd", drep.private_data);
}

void append_body(std::string& text, const CmSidrReq& req) {
  append(text, " reqid=%08x pkey=%04x sid=%016" PRIx64, req.request_id, req.pkey, req.service.value());
  append_request_data(text, req);
}

void append_body(std::string& text, const CmSidrRep& rep) {
  append(text, " reqid=%08x status=%d info_len=%d qpn=%06x sid=%016" PRIx64 " qkey=%08x", rep.request_id,
         static_cast<int>(rep.status), rep.info_bytes, rep.qpn.value(), rep.service.value(), rep.qkey);
  append_padded(text, "ari", rep.info);
  append_padded(text, "pd", rep.private_data);
}

void append_body(std::string& text, const CmLap& lap) {
  append_ids(text, lap);
  append(text, " remote_qpn=%06x", lap.remote_qpn.value());
  append_path(text, lap.alternate);
  append_padded(text, "pd", lap.private_data);
}

void append_body(std::string& text, const CmApr& apr) {
  append_ids(text, apr);
  append(text, " info_len=%d status=%d", apr.info_bytes, apr.status);
  append_padded(text, "ari", apr.info);
  append_padded(text, "pd", apr.private_data);
}

}  // namespace

std::string to_string(const CmMessage& message) {
  std::string text = std::string("CM ") + name_of(message);
  append(text, " tid=%016" PRIx64, message.tid);
  std::visit([&text](const auto& body) { append_body(text, body); }, message.body);
  return text;
}

}  // namespace nicless::wire

#include "core/store/protocol.h"

#include <utility>

#include "core/base/visit.h"

namespace dtrun::store {
namespace {

constexpr std::uint8_t kReplyOp = 64;
constexpr std::string_view kWhat = "store message";

}  // namespace

std::string Encode(const Request& request) {
  wire::Writer writer;
  writer("op", static_cast<std::uint8_t>(request.body.index() + 1));
  writer("id", request.id);
  Visit([&](const auto& body) { writer("body", body); }, request.body);
  return std::move(writer).Frame();
}

std::string Encode(const Reply& reply) {
  wire::Writer writer;
  writer("op", kReplyOp);
  writer("reply", reply);
  return std::move(writer).Frame();
}

Result<Request> DecodeRequest(std::string_view payload) {
  wire::Reader reader(payload);
  std::uint8_t op = 0;
  Request request;
  reader("op", op);
  reader("id", request.id);
  if (op == 0 || !wire::MakeAlternative(op - 1U, request.body)) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "malformed store message: unknown op {}", op);
  }
  Visit([&](auto& body) { reader("body", body); }, request.body);
  if (Status status = reader.Finish(kWhat); !status) return std::move(status).error();
  return request;
}

Result<Reply> DecodeReply(std::string_view payload) {
  wire::Reader reader(payload);
  std::uint8_t op = 0;
  Reply reply;
  reader("op", op);
  if (op != kReplyOp) {
    return Error::Of(DTRUN_INVALID_ARGUMENT, "malformed store message: op {} is not a reply", op);
  }
  reader("reply", reply);
  if (Status status = reader.Finish(kWhat); !status) return std::move(status).error();
  return reply;
}

}  // namespace dtrun::store

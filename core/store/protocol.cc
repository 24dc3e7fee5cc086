#include "core/store/protocol.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/visit.h"

namespace dtrun::store {
namespace {

constexpr std::uint8_t kReplyOp = 64;
constexpr std::string_view kWhat = "store message";

template <class Coder>
void Fields(Coder& a, Of<Coder, Hello>& m) {
  a.Number(m.version);
  a.Text(m.job_key, kMaxHelloBytes);
  a.Number(m.generation);
  a.Number(m.rank);
  a.Flag(m.main);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, Set>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Text(m.value, kMaxValueBytes);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, Get>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Number(m.timeout_ns);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, TryGet>& m) {
  a.Text(m.key, kMaxKeyBytes);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, Add>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Number(m.amount);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, CompareSet>& m) {
  a.Text(m.key, kMaxKeyBytes);
  a.Flag(m.has_expected);
  a.Text(m.expected, kMaxValueBytes);
  a.Text(m.desired, kMaxValueBytes);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, Erase>& m) {
  a.Text(m.key, kMaxKeyBytes);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, WaitMany>& m) {
  a.Texts(m.keys, kMaxWaitKeys, kMaxKeyBytes);
  a.Number(m.timeout_ns);
}
template <class Coder>
void Fields(Coder&, Of<Coder, Goodbye>&) {}
template <class Coder>
void Fields(Coder& a, Of<Coder, Report>& m) {
  ErrorFields(a, m.failure, kMaxReportBytes);
  List(a, m.members, kMaxReportMembers, [&](auto& rank) { a.Number(rank); });
}
template <class Coder>
void Fields(Coder& a, Of<Coder, Fail>& m) {
  a.Text(m.prefix, kMaxPrefixBytes);
  a.Text(m.text, kMaxReportBytes);
}
template <class Coder>
void Fields(Coder& a, Of<Coder, Reply>& m) {
  a.Number(m.id);
  a.Number(m.status);
  a.Number(m.number);
  a.Text(m.value, kMaxValueBytes);
}

}  // namespace

std::string Encode(const Request& request) {
  Encoder encoder;
  encoder.Number(static_cast<std::uint8_t>(request.body.index() + 1));
  encoder.Number(request.id);
  Visit([&](const auto& message) { Fields(encoder, message); }, request.body);
  return std::move(encoder).Frame();
}

std::string Encode(const Reply& reply) {
  Encoder encoder;
  encoder.Number(kReplyOp);
  Fields(encoder, reply);
  return std::move(encoder).Frame();
}

Result<Request> DecodeRequest(std::string_view payload) {
  Decoder decoder(payload);
  std::uint8_t op = 0;
  Request request;
  decoder.Number(op);
  decoder.Number(request.id);
  if (op == 0 || !MakeAlternative(op - 1U, request.body)) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("malformed store message: unknown op {}", op)};
  }
  Visit([&](auto& message) { Fields(decoder, message); }, request.body);
  if (Status status = decoder.Finish(kWhat); !status) return std::move(status).error();
  return request;
}

Result<Reply> DecodeReply(std::string_view payload) {
  Decoder decoder(payload);
  std::uint8_t op = 0;
  Reply reply;
  decoder.Number(op);
  if (op != kReplyOp) {
    return Error{DTRUN_INVALID_ARGUMENT, fmt::format("malformed store message: op {} is not a reply", op)};
  }
  Fields(decoder, reply);
  if (Status status = decoder.Finish(kWhat); !status) return std::move(status).error();
  return reply;
}

}  // namespace dtrun::store

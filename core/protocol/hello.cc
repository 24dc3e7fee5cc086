#include "core/protocol/hello.h"

#include <fmt/format.h>

#include "core/wire/coder.h"
#include "core/wire/json.h"

namespace dtrun::protocol {
namespace {

template <class Message>
std::string EncodeAs(Kind kind, const Message& message) {
  wire::Writer writer;
  writer("kind", kind);
  if (kind == Kind::kHello) writer("magic", kMagic);
  writer("message", message);
  return std::move(writer).Frame();
}

}  // namespace

std::string Encode(const Hello& hello) { return EncodeAs(Kind::kHello, hello); }
std::string Encode(const Welcome& welcome) { return EncodeAs(Kind::kWelcome, welcome); }

std::string Encode(const Refusal& refusal) {
  return EncodeAs(Kind::kRefusal, Refusal{refusal.final, refusal.text.substr(0, kMaxRefusalBytes)});
}

Result<Hello> DecodeHello(std::string_view payload) {
  wire::Reader reader(payload);
  Kind kind{};
  std::uint32_t magic = 0;
  reader("kind", kind);
  reader("magic", magic);
  if (kind != Kind::kHello || magic != kMagic) reader.Fail("does not begin as one");
  Hello hello;
  reader("message", hello);
  if (reader.ok() && hello.protocol != kProtocol) return hello;  // another protocol's fields are unknown
  if (Status status = reader.Finish("hello of an agent"); !status) return std::move(status).error();
  return hello;
}

Result<Welcome> DecodeAnswer(std::string_view payload) {
  wire::Reader reader(payload);
  Kind kind{};
  Welcome welcome;
  Refusal refusal;
  reader("kind", kind);
  if (kind == Kind::kWelcome) {
    reader("message", welcome);
  } else if (kind == Kind::kRefusal) {
    reader("message", refusal);
  } else {
    reader.Fail("is neither a welcome nor a refusal");
  }
  if (Status status = reader.Finish("answer of the root"); !status) return std::move(status).error();
  if (kind == Kind::kWelcome) return welcome;
  return Error{refusal.final ? DTRUN_FAILED_PRECONDITION : DTRUN_BUSY, std::move(refusal.text)};
}

Status Compare(const Hello& hello, std::string_view job) {
  if (hello.version != DTRUN_VERSION) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the root runs dtrun {}, this host {}; install the same version on both", DTRUN_VERSION,
                     hello.version);
  }
  if (hello.protocol != kProtocol) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "the root's dtrun {} speaks control protocol {}, this host's {}; install the same "
                     "build on both",
                     DTRUN_VERSION, kProtocol, hello.protocol);
  }
  if (hello.job != job) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "this root is of job '{}', this host belongs to job '{}'; give every host the "
                     "same command, or this one the address of its own job's root",
                     job, hello.job);
  }
  return {};
}

std::string ToLine(const JoinRequest& request, const std::string& key_digits) {
  Json line = wire::ToJson(request);
  line["key"] = key_digits;
  return JsonLine(line);
}

Result<JoinRequest> ParseJoinRequest(const std::string& line) {
  const Error malformed{DTRUN_INVALID_ARGUMENT,
                        "`dtrun agent` is started by dtrun on another host, which tells it on stdin what to "
                        "do; start a job with `dtrun --config FILE` instead"};
  const Json json = ParseJson(line);
  if (!json.is_object() || !json.contains("key") || !json["key"].is_string()) return malformed;
  Result<Key> key = Key::FromHex(json["key"].get_ref<const std::string&>());
  if (!key) return key.error();
  JoinRequest request{.key = *std::move(key)};
  wire::JsonReader reader(json);
  reader.From(json, request);
  if (!reader.ok()) return malformed;
  return request;
}

Result<int> NumberAmong(const JoinRequest& request, const char* node,
                        const std::function<bool(const std::string& name)>& is_own) {
  const bool by_variable = !request.node_variable.empty();
  for (const auto& [number, name] : request.nodes) {
    if (by_variable ? node != nullptr && name == node : is_own(name)) return number;
  }
  if (!by_variable) return Error{DTRUN_NOT_FOUND, "none of the names of the job's hosts is this host's"};
  return Error::Of(DTRUN_NOT_FOUND, "{} is {}, which is not one of the hosts", request.node_variable,
                   node == nullptr ? "unset" : fmt::format("'{}'", node));
}

}  // namespace dtrun::protocol

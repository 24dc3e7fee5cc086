#include "core/protocol/join_request.h"

#include <fmt/format.h>

#include "core/wire/json.h"

namespace dtrun::protocol {

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
  return Error{DTRUN_NOT_FOUND, fmt::format("{} is {}, which is not one of the hosts", request.node_variable,
                                            node == nullptr ? "unset" : fmt::format("'{}'", node))};
}

}  // namespace dtrun::protocol

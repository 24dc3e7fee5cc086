#include "core/protocol/join_request.h"

#include <fmt/format.h>

#include "core/base/json.h"

namespace dtrun::protocol {

std::string ToLine(const JoinRequest& request, const std::string& key_digits) {
  Json nodes = Json::array();
  for (const auto& [number, name] : request.nodes) nodes.push_back({number, name});
  return JsonLine(Json{{"job", request.job},
                       {"names", request.names},
                       {"port", request.port},
                       {"key", key_digits},
                       {"host", request.host},
                       {"nodes", nodes},
                       {"node_variable", request.node_variable},
                       {"join_timeout_ns", request.join_timeout.count()},
                       {"lost_after_ns", request.lost_after.count()},
                       {"port_range", request.port_range},
                       {"log_levels", request.log_levels},
                       {"log_json", request.log_json}});
}

Result<JoinRequest> ParseJoinRequest(const std::string& line) {
  const Error malformed{DTRUN_INVALID_ARGUMENT,
                        "`dtrun agent` is started by dtrun on another host, which tells it on stdin what to "
                        "do; start a job with `dtrun --config FILE` instead"};
  const Json json = ParseJson(line);
  if (!json.is_object()) return malformed;
  try {
    Result<protocol::Key> key = protocol::Key::FromHex(json.at("key").get<std::string>());
    if (!key) return key.error();
    std::map<int, std::string> nodes;
    for (const Json& node : json.at("nodes"))
      nodes.emplace(node.at(0).get<int>(), node.at(1).get<std::string>());
    return JoinRequest{json.at("job").get<std::string>(),
                       json.at("names").get<std::vector<std::string>>(),
                       json.at("port").get<int>(),
                       *std::move(key),
                       json.at("host").get<int>(),
                       std::move(nodes),
                       Nanoseconds(json.at("join_timeout_ns").get<std::int64_t>()),
                       Nanoseconds(json.at("lost_after_ns").get<std::int64_t>()),
                       json.at("port_range").get<std::string>(),
                       json.at("node_variable").get<std::string>(),
                       json.value("log_levels", ""),
                       json.value("log_json", false)};
  } catch (const Json::exception&) {  // a field is missing or has another type
    return malformed;
  }
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

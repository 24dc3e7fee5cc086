#include "core/plugin/hosts_wire.h"

#include "core/plugin/bytes_json.h"
#include "core/plugin/decode.h"

namespace dtrun::plugin::wire {
namespace {

Json FromMaybe(const std::optional<int>& number) { return number ? Json(*number) : Json(nullptr); }

std::optional<int> ToMaybe(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<int>();
}

}  // namespace

std::string Encode(const HostsRequest& request) {
  return JsonLine(
      Json{{"find_hosts", {{"options", request.options}, {"environment", FromMap(request.environment)}}}});
}

std::string Encode(const ConnectCall& call) {
  return JsonLine(Json{{"connect",
                        {{"options", call.options},
                         {"hosts", FromTexts(call.request.hosts)},
                         {"argv", FromTexts(call.request.argv)},
                         {"environment", FromMap(call.request.environment)}}}});
}

std::string Encode(const hosts::Allocation& allocation) {
  Json hosts = Json::array();
  for (const hosts::HostSlots& host : allocation.hosts)
    hosts.push_back({ToCharacters(host.name), FromMaybe(host.slots)});
  return JsonLine(Json{{"allocation",
                        {{"hosts", hosts},
                         {"count", {allocation.count.min, allocation.count.max}},
                         {"everywhere", allocation.everywhere},
                         {"own_index", FromMaybe(allocation.own_index)},
                         {"root_address", ToCharacters(allocation.root_address)},
                         {"rank_port", FromMaybe(allocation.rank_port)},
                         {"rank_port_taken", allocation.rank_port_taken},
                         {"processes_per_host", ToCharacters(allocation.processes_per_host)},
                         {"evidence", ToCharacters(allocation.evidence)},
                         {"implies", FromTexts(allocation.implies)},
                         {"sharing", ToCharacters(allocation.sharing)}}}});
}

std::string Encode(const std::vector<hosts::StartCommand>& commands) {
  Json list = Json::array();
  for (const hosts::StartCommand& command : commands) {
    list.push_back({{"argv", FromTexts(command.argv)},
                    {"hosts", command.hosts},
                    {"host_variable", ToCharacters(command.host_variable)},
                    {"trial", ToCharacters(command.trial)},
                    {"ending", ToCharacters(command.ending)}});
  }
  return JsonLine(Json{{"commands", list}});
}

Result<HostsRequest> DecodeHostsRequest(std::string_view line) {
  return Decode<HostsRequest>(line, "find_hosts", [](const Json& json) {
    return HostsRequest{json.at("options").get<std::string>(), ToMap(json.at("environment"))};
  });
}

Result<ConnectCall> DecodeConnectCall(std::string_view line) {
  return Decode<ConnectCall>(line, "connect", [](const Json& json) {
    return ConnectCall{json.at("options").get<std::string>(),
                       {ToTexts(json.at("hosts")), ToTexts(json.at("argv")), ToMap(json.at("environment"))}};
  });
}

Result<hosts::Allocation> DecodeAllocation(std::string_view line) {
  return Decode<hosts::Allocation>(line, "allocation", [](const Json& json) {
    hosts::Allocation out;
    for (const Json& host : json.at("hosts"))
      out.hosts.push_back({ToBytes(host.at(0).get_ref<const std::string&>()), ToMaybe(host.at(1))});
    out.count = {json.at("count").at(0).get<int>(), json.at("count").at(1).get<int>()};
    json.at("everywhere").get_to(out.everywhere);
    out.own_index = ToMaybe(json.at("own_index"));
    out.root_address = TextAt(json, "root_address");
    out.rank_port = ToMaybe(json.at("rank_port"));
    json.at("rank_port_taken").get_to(out.rank_port_taken);
    out.processes_per_host = TextAt(json, "processes_per_host");
    out.evidence = TextAt(json, "evidence");
    out.implies = ToTexts(json.at("implies"));
    out.sharing = TextAt(json, "sharing");
    return out;
  });
}

Result<std::vector<hosts::StartCommand>> DecodeCommands(std::string_view line) {
  return Decode<std::vector<hosts::StartCommand>>(line, "commands", [](const Json& json) {
    std::vector<hosts::StartCommand> out;
    for (const Json& command : json) {
      out.push_back({ToTexts(command.at("argv")), command.at("hosts").get<std::vector<std::size_t>>(),
                     TextAt(command, "host_variable"), TextAt(command, "trial"), TextAt(command, "ending")});
    }
    return out;
  });
}

}  // namespace dtrun::plugin::wire

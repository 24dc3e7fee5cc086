// Vertex AI and AI Platform with custom containers: CLUSTER_SPEC, a JSON object with the
// pools of hosts and this host's place in them. workerpool0 (chief) and workerpool1 (workers) train;
// workerpool2 (parameter or reduction servers) and workerpool3 (evaluators) run programs of their own.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/endpoint.h"
#include "core/base/json.h"
#include "core/hosts/platforms.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {
namespace {

constexpr int kTrainingPools = 2, kPools = 4;

void AddPool(Reading& reading, const std::string& name, const Json& pool, Allocation* out) {
  for (const Json& member : pool) {
    const Result<Endpoint> parsed = ParseEndpoint(member.is_string() ? member.get<std::string>() : "");
    const Endpoint address = parsed ? *parsed : Endpoint{};
    if (Status valid = CheckHostName(address.host); !valid || !address.port) {
      reading.Fail(fmt::format("CLUSTER_SPEC: {} in {} is not \"host:port\"", JsonLine(member), name));
      continue;
    }
    if (std::ranges::find(out->hosts, address.host, &HostSlots::name) != out->hosts.end()) {
      reading.Fail(fmt::format("CLUSTER_SPEC names host '{}' twice", address.host));
      continue;
    }
    if (out->hosts.empty()) {
      out->root_address = address.host;
      out->rank_port = address.port;
    }
    out->hosts.push_back({address.host, {}});
  }
}

// Fills hosts and own index. `task` has "workerpoolN" and the index in it. `helpers`: hosts that do not train.
void ReadSpec(Reading& reading, const Json& spec, Allocation* out, int* helpers) {
  const Json cluster = spec.is_object() ? spec.value("cluster", Json::object()) : Json();
  const Json task = spec.is_object() ? spec.value("task", Json::object()) : Json();
  if (!cluster.is_object() || !task.is_object() || !task.contains("type") || !task["type"].is_string() ||
      !task.contains("index") || !task["index"].is_number_unsigned()) {
    reading.Fail(
        "CLUSTER_SPEC is not of the form {\"cluster\": {\"workerpool0\": [\"host:port\"]}, \"task\": "
        "{\"type\": \"workerpool0\", \"index\": 0}}");
    return;
  }
  out->everywhere = true;
  const std::string type = task["type"].get<std::string>();
  const std::size_t index = task["index"].get<std::size_t>();
  for (int number = 0; number < kPools; ++number) {
    const std::string name = fmt::format("workerpool{}", number);
    const Json pool = cluster.value(name, Json::array());
    if (!pool.is_array() || pool.size() > kMaxHosts) {
      reading.Fail(fmt::format("CLUSTER_SPEC: {} is not a list of at most {} hosts", name, kMaxHosts));
      continue;
    }
    if (number >= kTrainingPools) {
      if (name == type && index < pool.size()) {
        return reading.Fail(fmt::format(
            "CLUSTER_SPEC says that this host is {} {}, and only workerpool0 and workerpool1 train; start "
            "the program of {} (a reduction server, a parameter server or an evaluator) without dtrun",
            type, index, name));
      }
      *helpers += static_cast<int>(pool.size());
      continue;
    }
    if (name == type && index < pool.size()) out->own_index = static_cast<int>(out->hosts.size() + index);
    AddPool(reading, name, pool, out);
  }
  out->count = {static_cast<int>(out->hosts.size()), static_cast<int>(out->hosts.size())};
  if (!out->own_index) reading.Fail(fmt::format("CLUSTER_SPEC: its cluster has no task {} {}", type, index));
}

}  // namespace

Result<Allocation> ReadVertex(const Environment& environment) {
  Reading reading(environment, "vertex");
  Allocation out;
  const std::string text = reading.Text("CLUSTER_SPEC");
  if (text.empty()) return reading.Take(out);
  const Json spec = ParseJson(text);
  if (spec.is_discarded()) {
    reading.Fail("CLUSTER_SPEC is not JSON");
    return reading.Take(out);
  }
  int helpers = 0;
  ReadSpec(reading, spec, &out, &helpers);
  if (!out.own_index) return reading.Take(out);
  const std::string says = fmt::format("CLUSTER_SPEC says host {} of {}", *out.own_index, out.count.min);
  reading.Expect("RANK", *out.own_index, says);
  // Vertex may count the helpers too.
  if (reading.MaybeNumber("WORLD_SIZE", 1) != out.count.min + helpers)
    reading.Expect("WORLD_SIZE", out.count.min, says);
  return reading.Take(out);
}

}  // namespace dtrun::hosts

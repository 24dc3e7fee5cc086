#include "core/plugin/plan_wire.h"

#include <algorithm>

#include "core/plugin/decode.h"

namespace dtrun::plugin::wire {
namespace {

// Each byte as the character of that number, which UTF-8 has for all 256.
std::string ToCharacters(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

// Of characters beyond 255 something is made; only a broken child sends them.
std::string ToBytes(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
    } else {
      bytes += static_cast<char>((byte << 6) | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return bytes;
}

Json FromTexts(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) out.push_back(ToCharacters(text));
  return out;
}

std::vector<std::string> ToTexts(const Json& json) {
  std::vector<std::string> out;
  for (const Json& text : json) out.push_back(ToBytes(text.get_ref<const std::string&>()));
  return out;
}

// Pairs, for the keys of an object must be UTF-8 as well.
Json FromMap(const std::map<std::string, std::string>& map) {
  Json out = Json::array();
  for (const auto& [name, value] : map) out.push_back({ToCharacters(name), ToCharacters(value)});
  return out;
}

std::map<std::string, std::string> ToMap(const Json& json) {
  std::map<std::string, std::string> out;
  for (const Json& pair : json)
    out[ToBytes(pair.at(0).get_ref<const std::string&>())] =
        ToBytes(pair.at(1).get_ref<const std::string&>());
  return out;
}

std::string TextAt(const Json& json, const char* key) {
  return ToBytes(json.at(key).get_ref<const std::string&>());
}

Json FromJob(const LaunchJob& job) {
  Json hosts = Json::array();
  for (const LaunchJob::Host& host : job.hosts)
    hosts.push_back({ToCharacters(host.name), host.first_rank, host.local_size, host.cores});
  return {{"name", ToCharacters(job.name)},
          {"argv", FromTexts(job.argv)},
          {"cwd", ToCharacters(job.cwd)},
          {"hosts", hosts},
          {"world_size", job.world_size},
          {"master_addr", ToCharacters(job.master_addr)},
          {"master_port", ToCharacters(job.master_port)},
          {"run_dir", ToCharacters(job.run_dir)},
          {"generation", ToCharacters(job.generation)},
          {"program", ToCharacters(job.program)},
          {"bind", ToCharacters(job.bind)},
          {"inherited", FromMap(job.inherited)}};
}

LaunchJob ToJob(const Json& json) {
  LaunchJob job;
  job.name = TextAt(json, "name");
  job.argv = ToTexts(json.at("argv"));
  job.cwd = TextAt(json, "cwd");
  for (const Json& host : json.at("hosts")) {
    job.hosts.push_back({ToBytes(host.at(0).get_ref<const std::string&>()), host.at(1).get<int>(),
                         host.at(2).get<int>(), host.at(3).get<int>()});
  }
  job.world_size = json.at("world_size").get<int>();
  job.master_addr = TextAt(json, "master_addr");
  job.master_port = TextAt(json, "master_port");
  job.run_dir = TextAt(json, "run_dir");
  job.generation = TextAt(json, "generation");
  job.program = TextAt(json, "program");
  job.bind = TextAt(json, "bind");
  job.inherited = ToMap(json.at("inherited"));
  return job;
}

}  // namespace

std::string Encode(const PlanRequest& request) {
  return JsonLine(Json{{"plan", {{"options", request.options}, {"job", FromJob(request.job)}}}});
}

std::string Encode(const LaunchPlan& plan) {
  Json processes = Json::array();
  for (const PlannedProcess& process : plan.processes) {
    processes.push_back({{"at", {process.host, process.rank, process.local_rank, process.rank_count}},
                         {"argv", FromTexts(process.argv)},
                         {"env", FromMap(process.env)},
                         {"unset", FromTexts(process.unset)},
                         {"cwd", ToCharacters(process.cwd)}});
  }
  return JsonLine(Json{{"planned", {{"processes", processes}, {"notes", FromTexts(plan.notes)}}}});
}

Result<PlanRequest> DecodePlanRequest(std::string_view line) {
  return Decode<PlanRequest>(line, "plan", [](const Json& json) {
    return PlanRequest{json.at("options").get<std::string>(), ToJob(json.at("job"))};
  });
}

Result<LaunchPlan> DecodePlan(std::string_view line) {
  return Decode<LaunchPlan>(line, "planned", [](const Json& json) {
    LaunchPlan plan;
    for (const Json& one : json.at("processes")) {
      const Json& at = one.at("at");
      plan.processes.push_back({at.at(0).get<int>(), at.at(1).get<int>(), at.at(2).get<int>(),
                                at.at(3).get<int>(), ToTexts(one.at("argv")), ToMap(one.at("env")),
                                ToTexts(one.at("unset")), TextAt(one, "cwd")});
    }
    plan.notes = ToTexts(json.at("notes"));
    return plan;
  });
}

}  // namespace dtrun::plugin::wire

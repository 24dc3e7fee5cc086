#include "core/plugin/plan_wire.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/plugin/bytes_json.h"
#include "core/plugin/decode.h"

namespace dtrun::plugin::wire {
namespace {

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

// `first`: the process relative to which others in the line are encoded; null: this is the first.
Json FromProcess(const PlannedProcess& process, const PlannedProcess* first) {
  Json out = {{"at", {process.host, process.rank, process.local_rank, process.rank_count}}};
  if (first == nullptr || process.argv != first->argv) out["argv"] = FromTexts(process.argv);
  if (first == nullptr || process.unset != first->unset) out["unset"] = FromTexts(process.unset);
  if (first == nullptr || process.cwd != first->cwd) out["cwd"] = ToCharacters(process.cwd);
  const auto has_all = [&] {
    return std::ranges::all_of(first->env, [&](const auto& one) { return process.env.contains(one.first); });
  };
  const bool whole = first == nullptr || !has_all();
  std::map<std::string, std::string> env(process.env.begin(), process.env.end());
  if (!whole) {
    std::erase_if(env, [&](const auto& one) {
      return first->env.contains(one.first) && first->env.at(one.first) == one.second;
    });
  }
  out[whole ? "env" : "differs"] = FromMap(env);
  return out;
}

// `shared`: the variables of `first`.
PlannedProcess ToProcess(const Json& json, const PlannedProcess* first,
                         const std::shared_ptr<const ProcessVariables::Map>& shared) {
  const Json& at = json.at("at");
  PlannedProcess out = {at.at(0).get<int>(), at.at(1).get<int>(), at.at(2).get<int>(), at.at(3).get<int>(),
                        {}, {}, {}, {}};
  const auto told = [&](const char* key) { return first == nullptr || json.contains(key); };
  out.argv = told("argv") ? ToTexts(json.at("argv")) : first->argv;
  out.unset = told("unset") ? ToTexts(json.at("unset")) : first->unset;
  out.cwd = told("cwd") ? TextAt(json, "cwd") : first->cwd;
  if (told("env")) {
    out.env = ToMap(json.at("env"));
  } else {
    out.env.ShareAll(shared);
    for (auto& [name, value] : ToMap(json.at("differs"))) out.env[name] = value;
  }
  return out;
}

}  // namespace

std::string Encode(const PlanRequest& request) {
  return JsonLine(Json{{"plan", {{"options", request.options}, {"job", FromJob(request.job)}}}});
}

std::string Encode(const LaunchPlan& plan, bool more) {
  std::string line = R"({"planned":{"processes":[)";
  for (const PlannedProcess& process : plan.processes) {
    const bool first = &process == &plan.processes.front();
    line += (first ? "" : ",") + JsonLine(FromProcess(process, first ? nullptr : &plan.processes.front()));
  }
  line += R"(],"notes":)" + JsonLine(FromTexts(plan.notes));
  return line + (more ? R"(,"more":true}})" : "}}");
}

Result<PlanRequest> DecodePlanRequest(std::string_view line) {
  return Decode<PlanRequest>(line, "plan", [](const Json& json) {
    return PlanRequest{json.at("options").get<std::string>(), ToJob(json.at("job"))};
  });
}

Result<bool> DecodePlan(std::string_view line, LaunchPlan* plan) {
  return Decode<bool>(line, "planned", [&](const Json& json) {
    const std::size_t first = plan->processes.size();
    std::shared_ptr<const ProcessVariables::Map> shared;
    for (const Json& one : json.at("processes")) {
      const PlannedProcess* const before =
          plan->processes.size() == first ? nullptr : &plan->processes[first];
      PlannedProcess process = ToProcess(one, before, shared);
      if (before == nullptr)
        shared = std::make_shared<const ProcessVariables::Map>(process.env.begin(), process.env.end());
      plan->processes.push_back(std::move(process));
    }
    for (std::string& note : ToTexts(json.at("notes"))) plan->notes.push_back(std::move(note));
    return json.contains("more");
  });
}

}  // namespace dtrun::plugin::wire

#include "core/plugin/plan_wire.h"

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

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/environments/outer.h"
#include "core/plan/at.h"
#include "core/plan/steps.h"

namespace dtrun::plan {
namespace {

bool HasControl(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Why no host could start the process; empty if one could.
std::string Impossible(const Plan& plan, const Process& process) {
  if (process.host < 0 || process.host >= static_cast<int>(plan.hosts.size()))
    return fmt::format("the job has {} host{}", plan.hosts.size(), plan.hosts.size() == 1 ? "" : "s");
  if (process.rank_count < 1) return fmt::format("it has {} ranks", process.rank_count);
  if (process.rank < 0 || std::int64_t{process.rank} + process.rank_count > plan.world_size())
    return fmt::format("the world has {} ranks", plan.world_size());
  const int local_size = plan.hosts[static_cast<std::size_t>(process.host)].local_size;
  if (process.local_rank < 0 || std::int64_t{process.local_rank} + process.rank_count > local_size)
    return fmt::format("its local rank is {}, of {} on that host", process.local_rank, local_size);
  if (process.argv.empty() || process.argv[0].empty()) return "it has no program";
  if (HasControl(process.cwd)) return "its working directory has control characters";
  return {};
}

Status CheckRanks(const Plan& plan, const std::vector<Process>& processes) {
  const auto planned = [&plan](const std::string& what) {
    return Error::Of(DTRUN_INTERNAL, "launcher '{}' planned {}; report it to the plugin's author",
                     plan.launcher, what);
  };
  std::vector<int> owners(static_cast<std::size_t>(plan.world_size()), 0);
  for (const Process& process : processes) {
    if (const std::string wrong = Impossible(plan, process); !wrong.empty())
      return planned(
          fmt::format("an impossible process: rank {}, host {}: {}", process.rank, process.host, wrong));
    for (int rank = process.rank; rank < process.rank + process.rank_count; ++rank) {
      ++owners[static_cast<std::size_t>(rank)];
    }
  }
  std::map<int, std::vector<std::pair<int, int>>> hosts;  // each rank, and its place among those of its host
  for (const Process& process : processes)
    for (int i = 0; i < process.rank_count; ++i)
      hosts[process.host].emplace_back(process.rank + i, process.local_rank + i);
  for (auto& [host, ranks] : hosts) {
    std::ranges::sort(ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const auto [rank, local] = ranks[i];
      if (local == static_cast<int>(i) || owners[static_cast<std::size_t>(rank)] != 1) continue;
      return planned(
          fmt::format("rank {} as local rank {} of its host, where it is number {}", rank, local, i));
    }
  }
  for (std::size_t rank = 0; rank < owners.size(); ++rank) {
    if (owners[rank] != 1)
      return planned(owners[rank] == 0 ? fmt::format("no process for rank {}", rank)
                                       : fmt::format("rank {} {} times instead of once", rank, owners[rank]));
  }
  return {};
}

}  // namespace

Result<Launched> AskLauncher(const Inputs& inputs, const Plan& plan, const std::vector<std::string>& command,
                             const std::string& cwd) {
  const spec::JobSpec& spec = inputs.spec;
  plugin::LaunchJob job;
  job.name = plan.job;
  job.argv = command;
  job.cwd = cwd;
  for (const Host& host : plan.hosts)
    job.hosts.push_back({host.name, host.first_rank, host.local_size, host.cores});
  job.world_size = plan.world_size();
  job.master_addr = plan.hosts.front().address;
  job.master_port = kTokenPort;
  job.run_dir = kTokenRunDir;
  job.generation = kTokenGeneration;
  job.program = inputs.program;
  job.bind = *spec.job.bind;
  for (const auto& [name, value] : inputs.environment) {
    if (!environments::MatchesAny(name, plan.withheld)) job.inherited[name] = value;
  }
  for (const auto& [name, value] : UserVariables(spec)) job.inherited[name] = value;
  job.inherited["DTRUN_CONFIG_RESTART_MAX"] = std::to_string(*spec.restart.max);  // wherever it was given

  auto answer = inputs.launcher.Plan(spec.launcher_options.Snapshot(), job);
  if (!answer && answer.error().code == DTRUN_OUT_OF_MEMORY) return answer.error();
  if (!answer) return AtPlugin(spec.launcher_options, spec.launcher.name, answer.error());
  Launched launched{{}, std::move(answer->notes)};
  for (plugin::PlannedProcess& from : answer->processes) {
    Process process;
    process.host = from.host;
    process.rank = from.rank;
    process.local_rank = from.local_rank;
    process.rank_count = from.rank_count;
    process.argv = std::move(from.argv);
    process.env = std::move(from.env);
    process.unset = std::move(from.unset);
    process.cwd = std::move(from.cwd);
    launched.processes.push_back(std::move(process));
  }
  if (Status ranks = CheckRanks(plan, launched.processes); !ranks) return ranks.error();
  std::ranges::sort(launched.processes, {}, &Process::rank);
  return launched;
}

}  // namespace dtrun::plan

#include "core/plan/dialects.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/environments/dialect.h"
#include "core/plan/at.h"

namespace dtrun::plan {
namespace {

// Adds `from` to `to`, or returns a conflict error. `owners` maps each name to its owner.
Status Merge(const std::string& owner, const environments::Variables& from, environments::Variables* to,
             std::map<std::string, std::string>* owners) {
  for (const auto& [name, value] : from) {
    const auto [before, fresh] = to->emplace(name, value);
    if (fresh) {
      owners->emplace(name, owner);
      continue;
    }
    if (before->second == value) continue;
    return Error::Of(DTRUN_INVALID_ARGUMENT, "the {} sets {}={}, the {} sets {}={}; leave one of them out",
                     owners->at(name), name, before->second, owner, name, value);
  }
  return {};
}

// The roles in job.success; empty: all ranks.
Result<std::vector<std::string>> SuccessOf(const spec::JobSpec& spec, const std::vector<std::string>& roles) {
  const auto there = [&](const std::string& role) { return std::ranges::count(roles, role) != 0; };
  const options::Data& data = spec.job.success.value.data;
  const auto* const list = std::get_if<std::vector<std::string>>(&data);
  if (list == nullptr && spec.job.success.is("all")) return std::vector<std::string>();
  if (list == nullptr && spec.job.success.is("auto")) {
    if (!there("ps")) return std::vector<std::string>();
    return std::vector<std::string>{there("chief") ? "chief" : "worker"};
  }
  std::vector<std::string> success = list != nullptr ? *list : std::vector{*spec.job.success};
  for (const std::string& role : success) {
    if (there(role)) continue;
    return At(spec.job.success, "no rank is '{}'; give \"all\", or roles that job.roles has", role);
  }
  return success;
}

}  // namespace

environments::RankTable TableOf(const Plan& plan) {
  environments::RankTable table;
  table.run_id = plan.job;
  for (const Host& host : plan.hosts)
    table.hosts.push_back({host.name, host.address, host.first_rank, host.local_size, host.sees_gpus});
  table.master_address = plan.hosts.front().address;
  table.master_port = kTokenPort;
  for (int rank = 0; rank < plan.world_size(); ++rank) table.task_ports.push_back(TaskPortToken(rank));
  table.roles = plan.roles;
  table.run_dir = kTokenRunDir;
  table.rendezvous_address = kTokenRendezvousAddress;
  table.rendezvous_port = kTokenRendezvousPort;
  return table;
}

bool NeedsRendezvous(const Plan& plan) {
  return std::ranges::find(plan.dialects, "horovod") != plan.dialects.end();
}

Status CheckDialects(const spec::JobSpec& spec) {
  if (!spec.job.dialects.has()) return {};
  std::set<std::string> named;
  for (const std::string& name : *spec.job.dialects) {
    if (const auto found = environments::FindDialect(name); !found)
      return At(spec.job.dialects, found.error());
    if (!named.insert(name).second) {
      return At(spec.job.dialects, "'{}' is named twice; leave one out", name);
    }
  }
  return {};
}

Status ChooseDialects(const spec::JobSpec& spec, Plan* plan) {
  if (spec.job.roles.has()) {
    auto roles = environments::AssignRoles(*spec.job.roles, plan->world_size());
    if (!roles) return At(spec.job.roles, roles.error());
    plan->roles = std::move(*roles);
  }
  auto success = SuccessOf(spec, plan->roles);
  if (!success) return success.error();
  plan->success = *std::move(success);
  if (Status known = CheckDialects(spec); !known) return known;
  if (!spec.job.dialects.has()) return {};
  for (const std::string& name : *spec.job.dialects) {
    auto found = environments::FindDialect(name);
    plan->dialects.push_back(name);
    if ((*found)->built_in_port == nullptr || plan->master_port != 0) continue;
    plan->master_port = (*found)->built_in_port(static_cast<int>(plan->hosts.size()));
    plan->notes.push_back(
        fmt::format("MASTER_PORT={}: programs of the {} dialect have it built in; job.master_port "
                    "chooses another",
                    plan->master_port, name));
  }
  return {};
}

Result<environments::Contract> DialectVariables(const Plan& plan, const environments::RankTable& table,
                                                const Process& process, const ProcessVariables& contract) {
  environments::Contract out;
  if (plan.dialects.empty()) return out;
  environments::Variables all(contract.begin(), contract.end());
  std::map<std::string, std::string> owners;
  for (const auto& [name, value] : contract) owners.emplace(name, plan.launcher + " launcher");
  for (const std::string& name : plan.dialects) {
    auto found = environments::FindDialect(name);
    if (!found) return found.error();
    const environments::Contract added = (*found)->write(table, process.rank);
    for (int other = process.rank + 1; other < process.rank + process.rank_count; ++other) {
      const environments::Contract theirs = (*found)->write(table, other);
      if (theirs.set == added.set && theirs.fallback == added.fallback) continue;
      return Error::Of(DTRUN_UNSUPPORTED,
                       "the {} dialect has variables for each rank, and the {} launcher starts one "
                       "process for ranks {}-{}; leave it out, or use launcher.name = \"per-process\"",
                       name, plan.launcher, process.rank, process.rank + process.rank_count - 1);
    }
    if (Status merged = Merge(name + " dialect", added.set, &all, &owners); !merged) {
      return Error::Of(merged.error().code, "for rank {} {}", process.rank, merged.error().text);
    }
    out.set.insert(added.set.begin(), added.set.end());
    out.fallback.insert(added.fallback.begin(), added.fallback.end());
  }
  return out;
}

}  // namespace dtrun::plan

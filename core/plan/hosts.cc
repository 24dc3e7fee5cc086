#include "core/plan/hosts.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "core/hosts/this_machine.h"
#include "core/plan/at.h"

namespace dtrun::plan {
bool IsHere(const spec::JobSpec& spec, const std::string& host) {
  return hosts::IsThisMachine(host) || (!host.empty() && host == spec.hosts_from.here);
}

bool HasCluster(const spec::JobSpec& spec) {
  const bool listed = spec.cluster.hosts.has();
  if (spec.cluster.connect.is("manual")) return listed || spec.cluster.host_count.has();
  if (!listed) return false;
  return spec.listed.size() != 1 || !IsHere(spec, spec.listed.front().name);
}

Result<std::vector<hosts::HostSlots>> ListedHosts(const spec::JobSpec& spec) {
  if (!spec.cluster.hosts.has()) {
    if (!HasCluster(spec)) return std::vector<hosts::HostSlots>{{hosts::HostName(), {}}};
    return std::vector<hosts::HostSlots>(static_cast<std::size_t>(*spec.cluster.host_count));
  }
  const hosts::HostSlots* here = nullptr;
  for (const hosts::HostSlots& host : spec.listed) {
    if (*spec.cluster.oversubscribe || !hosts::IsThisMachine(host.name)) continue;
    if (here != nullptr) {
      return At(spec.cluster.hosts,
                "'{0}' and '{1}' are both this machine; list it once, with more slots as in {0}:2, or "
                "set cluster.oversubscribe = true",
                here->name, host.name);
    }
    here = &host;
  }
  return spec.listed;
}

Result<std::vector<Host>> PlaceRanks(const spec::JobSpec& spec, const Hardware& here,
                                     const std::vector<Hardware>& reported) {
  const auto listed = ListedHosts(spec);
  if (!listed) return listed.error();
  const bool counted = spec.job.processes_per_host.given();
  std::vector<Host> hosts;
  std::set<std::string> seen;
  int next = 0;
  const bool known = !reported.empty();
  const std::size_t count = known ? reported.size() : listed->size();
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<Hardware> given;
    if (!known && GpusGiven(spec, static_cast<int>(i))) given = Assumed(spec, here, static_cast<int>(i));
    const Hardware& hardware = known ? reported[i] : given ? *given : here;
    const auto& [given_name, slots] = (*listed)[known ? static_cast<std::size_t>(hardware.number) : i];
    std::string name = given_name;
    if (name.empty()) {
      name = known ? hardware.name : fmt::format("host{}", i);
      if (!seen.insert(name).second) name += fmt::format("#{}", i);  // containers may all have the same name
    }
    int ranks = slots.value_or(0);
    if (!slots || counted) {
      Result<int> asked = ProcessesPerHost(spec, hardware);
      // A root without GPUs may lead hosts with GPUs, which are counted when they join.
      const bool draft = !known && HasCluster(spec);
      if (!asked && !draft) return asked.error();
      ranks = asked ? *asked : slots.value_or(1);
    }
    if (slots && ranks > *slots && !*spec.cluster.oversubscribe) {
      return At(spec.job.processes_per_host,
                "{} ranks on host {}, which has {} slot{} by {}; ask for fewer, or set "
                "cluster.oversubscribe = true",
                ranks, name, *slots, *slots == 1 ? "" : "s", spec.cluster.hosts.place());
    }
    hosts.push_back({std::move(name), next, ranks, hardware.topology.core_count()});
    if (count > 1) hosts.back().address = i == 0 ? kTokenAddress : HostAddressToken(i);
    next += ranks;
  }
  // Check now: the plan has a process for each rank, and messages name each one.
  if (const Status size = hosts::CheckSize(count, next); !size)
    return spec.cluster.hosts.has() ? At(spec.cluster.hosts, size.error())
                                    : At(spec.job.processes_per_host, size.error());
  return hosts;
}

}  // namespace dtrun::plan

#include "core/plan/hosts.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

#include "core/hosts/this_machine.h"
#include "core/plan/at.h"

namespace dtrun::plan {
namespace {

constexpr char kHosts[] = "cluster.hosts";
constexpr char kPerHost[] = "job.processes_per_host";
constexpr char kHostCount[] = "cluster.host_count";

}  // namespace

bool IsHere(const config::Settings& settings, const std::string& host) {
  return hosts::IsThisMachine(host) || (!host.empty() && host == settings.hosts_from().here);
}

bool HasCluster(const config::Settings& settings) {
  const bool listed = settings.Has(kHosts);
  if (settings.Text("cluster.connect") == "manual") return listed || settings.Has(kHostCount);
  if (!listed) return false;
  if (settings.List(kHosts).size() != 1) return true;
  const auto hosts = hosts::ParseHosts(settings.List(kHosts));
  return !hosts || hosts->size() != 1 || !IsHere(settings, hosts->front().name);
}

Result<std::vector<hosts::HostSlots>> ListedHosts(const config::Settings& settings) {
  if (!settings.Has(kHosts)) {
    if (!HasCluster(settings)) return std::vector<hosts::HostSlots>{{hosts::HostName(), {}}};
    return std::vector<hosts::HostSlots>(static_cast<std::size_t>(settings.Int(kHostCount)));
  }
  auto hosts = hosts::ParseHosts(settings.List(kHosts));
  if (!hosts) return At(settings, kHosts, hosts.error().text);
  const hosts::HostSlots* here = nullptr;
  for (const hosts::HostSlots& host : *hosts) {
    if (settings.Bool("cluster.oversubscribe") || !hosts::IsThisMachine(host.name)) continue;
    if (here != nullptr) {
      return At(
          settings, kHosts,
          fmt::format("'{0}' and '{1}' are both this machine; list it once, with more slots as in {0}:2, or "
                      "set cluster.oversubscribe = true",
                      here->name, host.name));
    }
    here = &host;
  }
  return hosts;
}

Result<std::vector<Host>> PlaceRanks(const config::Settings& settings, const Hardware& here,
                                     const std::vector<Hardware>& reported) {
  const auto listed = ListedHosts(settings);
  if (!listed) return listed.error();
  const bool counted = settings.Get(kPerHost).origin.kind != DTRUN_ORIGIN_DEFAULT;
  std::vector<Host> hosts;
  std::set<std::string> seen;
  int next = 0;
  const bool known = !reported.empty();
  const std::size_t count = known ? reported.size() : listed->size();
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<Hardware> given;
    if (!known && GpusGiven(settings, static_cast<int>(i)))
      given = Assumed(settings, here, static_cast<int>(i));
    const Hardware& hardware = known ? reported[i] : given ? *given : here;
    const auto& [given_name, slots] = (*listed)[known ? static_cast<std::size_t>(hardware.number) : i];
    std::string name = given_name;
    if (name.empty()) {
      name = known ? hardware.name : fmt::format("host{}", i);
      if (!seen.insert(name).second) name += fmt::format("#{}", i);  // containers may all have the same name
    }
    int ranks = slots.value_or(0);
    if (!slots || counted) {
      Result<int> asked = ProcessesPerHost(settings, hardware);
      // A root without GPUs may lead hosts with GPUs, which are counted when they join.
      const bool draft = !known && HasCluster(settings);
      if (!asked && !draft) return asked.error();
      ranks = asked ? *asked : slots.value_or(1);
    }
    if (slots && ranks > *slots && !settings.Bool("cluster.oversubscribe")) {
      return At(settings, kPerHost,
                fmt::format("{} ranks on host {}, which has {} slot{} by {}; ask for fewer, or set "
                            "cluster.oversubscribe = true",
                            ranks, name, *slots, *slots == 1 ? "" : "s", settings.Get(kHosts).origin.place));
    }
    hosts.push_back({std::move(name), next, ranks, hardware.topology.core_count()});
    if (count > 1) hosts.back().address = i == 0 ? kTokenAddress : HostAddressToken(i);
    next += ranks;
  }
  // Check now: the plan has a process for each rank, and messages name each one.
  if (const Status size = hosts::CheckSize(count, next); !size)
    return At(settings, settings.Has(kHosts) ? kHosts : kPerHost, size.error());
  return hosts;
}

}  // namespace dtrun::plan

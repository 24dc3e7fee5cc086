// The loader's part for job.ranks, the total number of ranks. It is converted to a number for each host, so
// that after loading there are only hosts and their ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "core/config/loader.h"
#include "core/hosts/host_slots.h"

namespace dtrun::config {
namespace {

constexpr char kRanks[] = "job.ranks";
constexpr char kPerHost[] = "job.processes_per_host";
constexpr char kHostList[] = "cluster.hosts";
constexpr char kHostNumber[] = "cluster.host_count";

// The number of ranks of each host, possibly 0. Hosts with a limit are filled in order; those without one
// share the rest evenly, the first ones getting one more. `over`: limits may be exceeded.
std::vector<std::int64_t> Shares(std::int64_t ranks, const std::vector<std::optional<std::int64_t>>& limits,
                                 bool over) {
  std::vector<std::int64_t> shares(limits.size());
  std::int64_t left = ranks;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (limits[i]) {
      shares[i] = std::min(left, *limits[i]);
      left -= shares[i];
    } else {
      open.push_back(i);
    }
  }
  if (open.empty() && over) {
    open.resize(limits.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
  }
  const auto count = static_cast<std::int64_t>(open.size());
  for (std::int64_t i = 0; i < count; ++i) {
    shares[open[static_cast<std::size_t>(i)]] += left / count + (i < left % count ? 1 : 0);
  }
  return shares;
}

}  // namespace

// Of job.ranks and job.processes_per_host the one given last counts; if both are given in one place, the
// second limits the ranks of a host.
void Loader::ShareRanks() {
  if (!settings_.Has(kRanks) || failed_.contains(kRanks) || failed_.contains(kPerHost)) return;
  const options::Spec& spec = *settings_.Find(kRanks);
  const options::Value ranks = settings_.Get(kRanks);
  options::Value& per_host = settings_.values_.find(kPerHost)->second;
  if (per_host.origin.kind > ranks.origin.kind) {
    settings_.values_[kRanks] = {};
    return;
  }
  std::optional<std::int64_t> most;
  if (per_host.origin.kind == ranks.origin.kind) {
    const auto* number = std::get_if<std::int64_t>(&per_host.data);
    if (number == nullptr) {
      return Fail(spec, places_[kRanks], "",
                  fmt::format("{} says how many ranks each host runs; leave one of them out", kPerHost));
    }
    most = *number;
  }
  const std::int64_t count = std::get<std::int64_t>(ranks.data);
  if (!settings_.Has(kHostList)) return ShareUnnamed(spec, count, most);

  auto hosts = hosts::ParseHosts(settings_.List(kHostList));
  if (!hosts) return;  // already reported
  std::vector<std::optional<std::int64_t>> limits;
  for (const hosts::HostSlots& host : *hosts) {
    std::optional<std::int64_t> limit = most;
    if (host.slots) limit = std::min<std::int64_t>(*host.slots, most.value_or(*host.slots));
    limits.push_back(limit);
  }
  const std::vector<std::int64_t> shares = Shares(count, limits, settings_.Bool("cluster.oversubscribe"));
  const std::int64_t placed = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  if (placed < count) {
    return Fail(spec, places_[kRanks], "",
                fmt::format("{} ranks, and there is room for {} on {} host{} ({}); ask for fewer, name more "
                            "hosts or slots, or set cluster.oversubscribe = true",
                            count, placed, hosts->size(), hosts->size() == 1 ? "" : "s",
                            settings_.Get(kHostList).origin.place));
  }
  std::vector<std::string> used;
  for (std::size_t i = 0; i < hosts->size(); ++i) {
    if (shares[i] > hosts::kMaxSlots) return FailTooManyRanks(spec, shares[i]);
    if (shares[i] > 0) used.push_back(hosts::ToText({(*hosts)[i].name, static_cast<int>(shares[i])}));
  }
  settings_.values_[kHostList].data = std::move(used);
  per_host = {std::int64_t{1}, {}};  // the slots now have the number
}

// Runs before anything is allocated per rank. A host that counts its own processors or GPUs has at least one rank; a
// plan checks again once the hosts have reported them.
void Loader::CheckSize() {
  for (const char* key : {kPerHost, kRanks, kHostList, kHostNumber}) {
    if (failed_.contains(key)) return;
  }
  const options::Value& per_host = settings_.Get(kPerHost);
  const auto* number = std::get_if<std::int64_t>(&per_host.data);
  const bool counted = per_host.origin.kind != DTRUN_ORIGIN_DEFAULT;
  const std::int64_t each = number == nullptr ? 1 : *number;
  std::size_t count = 1;
  std::int64_t ranks = 0;
  const char* source = kHostNumber;
  if (settings_.Has(kHostList)) {
    const auto hosts = hosts::ParseHosts(settings_.List(kHostList));
    if (!hosts) return;  // already reported
    count = hosts->size();
    for (const hosts::HostSlots& host : *hosts) ranks += counted ? each : host.slots.value_or(each);
    source = kHostList;
  } else {
    if (settings_.Has(kHostNumber)) count = static_cast<std::size_t>(settings_.Int(kHostNumber));
    ranks = static_cast<std::int64_t>(count) * each;
  }
  const Status size = hosts::CheckSize(count, ranks);
  if (size) return;
  const std::string& hosts_place = settings_.Get(source).origin.place;
  Fail(*settings_.Find(source), {settings_.Get(source).origin.kind, {}, hosts_place}, "",
       size.error().text + (counted ? fmt::format(" ({} = {}, {})", kPerHost, each, per_host.origin.place) : ""));
}

// For this machine alone, or for unnamed hosts, which all run the same number.
void Loader::ShareUnnamed(const options::Spec& spec, std::int64_t ranks, std::optional<std::int64_t> most) {
  const bool several = settings_.Has(kHostNumber) && settings_.Text("cluster.connect") == "manual";
  const std::int64_t hosts = several ? settings_.Int(kHostNumber) : 1;
  const std::int64_t share = ranks / hosts;
  if (share * hosts != ranks) {
    return Fail(
        spec, places_[kRanks], "",
        fmt::format("{} ranks are not a multiple of {} hosts without names, which all run the same number; "
                    "change it, or name the hosts with their slots in cluster.hosts",
                    ranks, hosts));
  }
  if (most && share > *most) {
    return Fail(spec, places_[kRanks], "",
                fmt::format("{} ranks on {} host{}, of which each runs at most {} ({}); ask for fewer", ranks,
                            hosts, hosts == 1 ? "" : "s", *most, settings_.Get(kPerHost).origin.place));
  }
  if (share > hosts::kMaxSlots) return FailTooManyRanks(spec, share);
  settings_.values_[kPerHost] = {share, settings_.Get(kRanks).origin};
}

void Loader::FailTooManyRanks(const options::Spec& spec, std::int64_t ranks) {
  Fail(spec, places_[kRanks], "",
       fmt::format("{} ranks on one host; at most {} are served there", ranks, hosts::kMaxSlots));
}

}  // namespace dtrun::config

// job.ranks, the total number of ranks, is converted to a number for each host, so
// that after loading there are only hosts and their ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>

#include "core/hosts/host_slots.h"
#include "core/spec/job_hosts.h"

namespace dtrun::spec {
namespace {

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

void FailTooManyRanks(Builder& builder, std::int64_t ranks) {
  builder.Fail(builder.spec.job.ranks,
               fmt::format("{} ranks on one host; at most {} are served there", ranks, hosts::kMaxSlots));
}

// For this machine alone, or for unnamed hosts, which all run the same number.
void ShareUnnamed(Builder& builder, std::int64_t ranks, std::optional<std::int64_t> most) {
  const UnsignedField& asked = builder.spec.job.ranks;
  CountField& per_host = builder.spec.job.processes_per_host;
  const std::int64_t hosts =
      builder.spec.cluster.connect.is("manual") ? builder.spec.cluster.host_count.value_or(1) : 1;
  const std::int64_t share = ranks / hosts;
  if (share * hosts != ranks) {
    return builder.Fail(
        asked, fmt::format("{} ranks are not a multiple of {} hosts without names, which all run the same "
                           "number; change it, or name the hosts with their slots in cluster.hosts",
                           ranks, hosts));
  }
  if (most && share > *most) {
    return builder.Fail(
        asked, fmt::format("{} ranks on {} host{}, of which each runs at most {} ({}); ask for fewer", ranks,
                           hosts, hosts == 1 ? "" : "s", *most, per_host.place()));
  }
  if (share > hosts::kMaxSlots) return FailTooManyRanks(builder, share);
  per_host.value = {share, asked.value.origin};
}

// Of job.ranks and job.processes_per_host the one given last counts; if both are given in one place, the
// second limits the ranks of a host.
void ShareByNumber(Builder& builder) {
  UnsignedField& ranks = builder.spec.job.ranks;
  CountField& per_host = builder.spec.job.processes_per_host;
  if (!ranks.has() || builder.Failed(ranks) || builder.Failed(per_host)) return;
  const int before = per_host.value.origin.kind, now = ranks.value.origin.kind;
  if (before > now) {
    ranks.value = {};
    return;
  }
  std::optional<std::int64_t> most;
  if (before == now) {
    const auto* number = per_host.as<std::int64_t>();
    if (number == nullptr) {
      return builder.Fail(
          ranks, fmt::format("{} says how many ranks each host runs; leave one of them out", per_host.key()));
    }
    most = *number;
  }
  const std::int64_t count = *ranks;
  ListField& list = builder.spec.cluster.hosts;
  if (!list.has()) return ShareUnnamed(builder, count, most);

  std::vector<std::optional<std::int64_t>> limits;
  for (const hosts::HostSlots& host : builder.spec.listed) {
    std::optional<std::int64_t> limit = most;
    if (host.slots) limit = std::min<std::int64_t>(*host.slots, most.value_or(*host.slots));
    limits.push_back(limit);
  }
  const std::vector<std::int64_t> shares = Shares(count, limits, *builder.spec.cluster.oversubscribe);
  const std::int64_t placed = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  if (placed < count) {
    return builder.Fail(
        ranks, fmt::format("{} ranks, and there is room for {} on {} host{} ({}); ask for fewer, name more "
                           "hosts or slots, or set cluster.oversubscribe = true",
                           count, placed, limits.size(), limits.size() == 1 ? "" : "s", list.place()));
  }
  std::vector<hosts::HostSlots> used;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] > hosts::kMaxSlots) return FailTooManyRanks(builder, shares[i]);
    if (shares[i] == 0) continue;
    used.push_back({builder.spec.listed[i].name, static_cast<int>(shares[i])});
    texts.push_back(hosts::ToText(used.back()));
  }
  builder.spec.listed = std::move(used);
  list.value.data = std::move(texts);
  per_host.value = {std::int64_t{1}, {}};  // the slots now have the number
}

// Runs before anything is allocated per rank. A host that counts its own processors or GPUs has at least one
// rank; a plan checks again once the hosts have reported them.
void CheckSize(Builder& builder) {
  const CountField& per_host = builder.spec.job.processes_per_host;
  const ListField& list = builder.spec.cluster.hosts;
  const UnsignedField& host_count = builder.spec.cluster.host_count;
  if (builder.Failed(per_host) || builder.Failed(builder.spec.job.ranks) || builder.Failed(list) ||
      builder.Failed(host_count))
    return;
  const auto* number = per_host.as<std::int64_t>();
  const std::int64_t each = number == nullptr ? 1 : *number;
  std::size_t count = builder.spec.listed.size();
  std::int64_t ranks = 0;
  const AnyField& source = list.has() ? static_cast<const AnyField&>(list) : host_count;
  if (list.has()) {
    for (const hosts::HostSlots& host : builder.spec.listed)
      ranks += per_host.given() ? each : host.slots.value_or(each);
  } else {
    count = static_cast<std::size_t>(host_count.value_or(1));
    ranks = static_cast<std::int64_t>(count) * each;
  }
  const Status size = hosts::CheckSize(count, ranks);
  if (size) return;
  builder.Fail(
      source.row(), {source.value.origin.kind, {}, source.place()}, "",
      size.error().text +
          (per_host.given() ? fmt::format(" ({} = {}, {})", per_host.key(), each, per_host.place()) : ""));
}

}  // namespace

void ShareRanks(Builder& builder) {
  ShareByNumber(builder);
  CheckSize(builder);
}

}  // namespace dtrun::spec

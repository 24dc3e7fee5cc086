#include "core/binding/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/number.h"

namespace dtrun::binding {
namespace {

using Cores = std::vector<const Core*>;

template <class Which>
Cores Those(const Topology& topology, const Which& which) {
  Cores out;
  for (const Core& core : topology.cores) {
    if (which(core)) out.push_back(&core);
  }
  return out;
}

// Contiguous shares of `cores`; their sizes differ by at most one core.
std::vector<Cores> Share(const Cores& cores, std::size_t ranks) {
  std::vector<Cores> out;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto cut = [&](std::size_t i) {
      return cores.begin() + static_cast<std::ptrdiff_t>(i * cores.size() / ranks);
    };
    out.emplace_back(cut(rank), cut(rank + 1));
  }
  return out;
}

// Takes one share of each NUMA node in turn.
std::vector<Cores> Deal(const std::vector<Cores>& shares) {
  std::vector<std::vector<Cores>> nodes;
  for (const Cores& share : shares) {
    if (nodes.empty() || nodes.back().front().front()->numa != share.front()->numa) nodes.emplace_back();
    nodes.back().push_back(share);
  }
  std::vector<Cores> out;
  for (std::size_t turn = 0; out.size() < shares.size(); ++turn) {
    for (const auto& node : nodes) {
      if (turn < node.size()) out.push_back(node[turn]);
    }
  }
  return out;
}

// Each rank's share of the cores near its GPU; empty if that is impossible.
std::vector<Cores> ShareNearGpus(const Topology& topology, const std::vector<int>& gpu_nodes) {
  std::map<int, std::size_t> ranks_at;
  for (int node : gpu_nodes) ++ranks_at[node];
  std::map<int, std::vector<Cores>> shares_at;
  for (const auto& [node, ranks] : ranks_at) {
    const Cores near = Those(topology, [at = node](const Core& core) { return core.numa == at; });
    if (near.size() < ranks) return {};
    shares_at[node] = Share(near, ranks);
  }
  std::map<int, std::size_t> next;
  std::vector<Cores> out;
  for (int node : gpu_nodes) out.push_back(shares_at[node][next[node]++]);
  return out;
}

// The share and all other cores of the domains that it touches.
Cores Widen(const Topology& topology, const Cores& share, int Core::*domain) {
  std::set<int> touched;
  for (const Core* core : share) touched.insert(core->*domain);
  return Those(topology, [&](const Core& core) { return touched.contains(core.*domain); });
}

std::vector<int> ProcessorsOf(const Cores& cores) {
  std::vector<int> out;
  for (const Core* core : cores) out.insert(out.end(), core->processors.begin(), core->processors.end());
  std::ranges::sort(out);
  return out;
}

std::string Plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "rank 0: 0-1, rank 1: 2-3": each distinct set once, only the first few.
std::string Sets(const std::vector<std::vector<int>>& processors) {
  constexpr std::size_t kShown = 4;
  std::vector<std::pair<std::string, std::vector<int>>> sets;  // set, and its local ranks
  for (int rank = 0; const auto& set : processors) {
    const std::string list = NumberList(set);
    auto known = std::ranges::find(sets, list, [](const auto& one) { return one.first; });
    if (known == sets.end()) known = sets.insert(known, {list, {}});
    known->second.push_back(rank++);
  }
  std::vector<std::string> parts;
  for (const auto& [list, ranks] : sets)
    parts.push_back(fmt::format("rank{} {}: {}", ranks.size() == 1 ? "" : "s", NumberList(ranks), list));
  const bool cut = parts.size() > kShown;
  if (cut) parts.resize(kShown);
  return fmt::format("{}{}", fmt::join(parts, ", "), cut ? ", ..." : "");
}

std::string Describe(const std::vector<Cores>& sets, const Binding& binding, const std::string& policy) {
  const auto [least, most] = std::ranges::minmax(sets, {}, &Cores::size);
  const std::string size = least.size() == most.size()
                               ? Plural(least.size(), "core")
                               : fmt::format("{} to {}", least.size(), Plural(most.size(), "core"));
  return fmt::format("{} per rank{} (processors of {})", size, policy == "core" ? "" : ", " + policy,
                     Sets(binding.processors));
}

// Mentions the quota if it is the limit.
std::string QuotaText(const Topology& topology) {
  const int cores = topology.core_count();
  if (topology.cores.size() == static_cast<std::size_t>(cores)) return {};
  return fmt::format("; CPU quota of {} on {}", cores, Plural(topology.cores.size(), "core"));
}

Binding Unbound(const Topology& topology, int ranks, const std::string& why) {
  Binding out;
  out.processors.resize(static_cast<std::size_t>(ranks));
  out.cores = topology.core_count();
  out.text = "none" + why + QuotaText(topology);
  return out;
}

bool OneNode(const Topology& topology) {
  return std::ranges::all_of(topology.cores,
                             [&](const Core& core) { return core.numa == topology.cores.front().numa; });
}

}  // namespace

// In the order of the enumerators.
const std::vector<std::string>& PolicyNames() {
  static const std::vector<std::string> kNames = {"auto",     "none",       "compact", "spread",
                                                  "per-numa", "per-socket", "core"};
  return kNames;
}

Policy ParsePolicy(std::string_view name) {
  const auto found = std::ranges::find(PolicyNames(), name);
  return static_cast<Policy>(found - PolicyNames().begin());
}

Binding Bind(const Topology& topology, int ranks, Policy policy, const std::vector<int>& gpu_nodes) {
  const auto cores = static_cast<std::size_t>(topology.core_count());
  const auto count = static_cast<std::size_t>(ranks);
  if (policy == Policy::kNone) return Unbound(topology, ranks, "");
  if (count > cores)
    return Unbound(topology, ranks, fmt::format(": {} ranks share {}", ranks, Plural(cores, "core")));

  std::vector<Cores> shares;
  if (!gpu_nodes.empty()) shares = ShareNearGpus(topology, gpu_nodes);
  const bool near_gpus = !shares.empty();
  std::string name = PolicyNames()[static_cast<std::size_t>(policy)];
  if (policy == Policy::kAuto) {
    if (OneNode(topology)) return Unbound(topology, ranks, " (auto: one NUMA node)");
    if (ranks == 1 && !near_gpus) return Unbound(topology, ranks, " (auto: one rank)");
    policy = Policy::kPerNuma;
    name = "auto: per-numa";
  }
  if (near_gpus) {
    name += ", near its GPU";
  } else {
    shares = Share(Those(topology, [](const Core&) { return true; }), count);
    if (policy == Policy::kSpread) shares = Deal(shares);
  }

  Binding out;
  out.cores = static_cast<int>(near_gpus ? count * std::ranges::min(shares, {}, &Cores::size).size() : cores);
  for (Cores& share : shares) {
    if (policy == Policy::kPerNuma) share = Widen(topology, share, &Core::numa);
    if (policy == Policy::kPerSocket) share = Widen(topology, share, &Core::socket);
    if (policy == Policy::kCore) share.resize(1);
    out.processors.push_back(ProcessorsOf(share));
  }
  if (policy == Policy::kCore) out.cores = ranks;
  out.cores = std::min(out.cores, topology.core_count());
  out.text = Describe(shares, out, name) + QuotaText(topology);
  return out;
}

}  // namespace dtrun::binding

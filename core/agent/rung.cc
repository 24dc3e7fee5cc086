#include "core/agent/rung.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/agent/cause.h"

namespace dtrun::agent {
namespace {

// Ids of core/diagnosis that a way between GPUs explains.
constexpr std::array<std::string_view, 3> kPeerFailures = {"cuda-peer-access", "nccl-p2p-denied",
                                                           "nccl-first-call-stuck"};
constexpr std::array<std::string_view, 3> kShmFailures = {"nccl-shm-full", "nccl-shm-apart",
                                                          "nccl-first-call-stuck"};

template <class List>
bool Lists(const List& list, std::string_view id) {
  return std::ranges::find(list, id) != list.end();
}

bool IsDecided(const plan::Plan& plan, const std::function<bool(std::string_view)>& inherited,
               const std::string& variable) {
  return inherited(variable) || std::ranges::any_of(plan.processes, [&](const plan::Process& process) {
           return process.env.contains(variable);
         });
}

}  // namespace

std::optional<Rung> NextRung(const Facts& facts, const plan::Plan& plan,
                             const std::function<bool(std::string_view)>& inherited) {
  const Cause cause = FindCause(facts);
  if (plan.backend != "nccl" || facts.interrupt != 0 || facts.guard_died || !facts.losses.empty()) return {};
  if (cause.kind != Cause::Kind::kRank) return {};
  const RankFacts& rank = facts.ranks[cause.index];
  if (!rank.known || !rank.known->recent) return {};
  const std::string_view id = rank.known->finding.failure->id;
  const auto free = [&](const char* variable) { return !IsDecided(plan, inherited, variable); };
  if (Lists(kPeerFailures, id) && free("NCCL_P2P_DISABLE")) {
    return Rung{
        {{"NCCL_P2P_DISABLE", "1"}, {"DTRUN_P2P", "off"}},
        fmt::format("rank {}: {}; starting again without peer access between GPUs (NCCL_P2P_DISABLE=1)",
                    rank.rank, rank.known->finding.what)};
  }
  if (Lists(kShmFailures, id) && free("NCCL_SHM_DISABLE")) {
    return Rung{{{"NCCL_SHM_DISABLE", "1"}},
                fmt::format("rank {}: {}; starting again over the network alone (NCCL_SHM_DISABLE=1)",
                            rank.rank, rank.known->finding.what)};
  }
  return {};
}

}  // namespace dtrun::agent

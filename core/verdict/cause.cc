#include "core/verdict/cause.h"

#include <algorithm>
#include <csignal>
#include <set>

#include "core/base/error_id.h"
#include "core/verdict/aborter.h"
#include "core/verdict/recognise.h"
#include "core/verdict/traceback.h"
#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

constexpr std::size_t kNoRank = static_cast<std::size_t>(-1);

std::size_t IndexOf(const Facts& facts, int rank) {
  const auto after = std::ranges::upper_bound(facts.ranks, rank, {}, &RankFacts::rank);
  return after == facts.ranks.begin() ? kNoRank : static_cast<std::size_t>(after - facts.ranks.begin()) - 1;
}

std::optional<std::size_t> LossOf(const Facts& facts, const std::string& host) {
  for (std::size_t i = 0; i < facts.losses.size(); ++i) {
    if (facts.losses[i].host == host) return i;
  }
  return std::nullopt;
}

// Follows blame from `from` to a rank that failed by itself. Returns `from` if it blames no such rank.
std::size_t FollowBlame(const Facts& facts, std::size_t from) {
  std::set<std::size_t> seen{from};
  for (bool moved = true; moved;) {
    moved = false;
    for (const PeerReport& report : facts.ranks[from].reports) {
      const std::size_t peer = IndexOf(facts, report.peer);
      if (peer == kNoRank || seen.contains(peer)) continue;
      const bool lost = LossOf(facts, facts.ranks[peer].host).has_value();
      if (!lost && !facts.ranks[peer].FailedByItself()) continue;
      seen.insert(peer);
      from = peer;
      moved = true;
      break;
    }
  }
  if (!facts.ranks[from].BlamesPeer()) return from;
  // Every rank on the way blames another. A rank that failed without blaming others came first.
  std::size_t first = from;
  const std::set<int> members = MembersMissed(facts, from);
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (!rank.FailedByItself() || rank.BlamesPeer() || !IsAmong(members, rank)) continue;
    if (first == from || rank.ended_at < facts.ranks[first].ended_at) first = i;
  }
  return first;
}

// The rank that failed first among those that did within moments, if others waited for its lock until then:
// it may exit after them. Else `first`.
std::size_t HolderThatFailedBefore(const Facts& facts, std::size_t first) {
  const auto& at = facts.ranks[first].erred_at;
  for (std::size_t i = 0; at && i < facts.ranks.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (rank.FailedByItself() && rank.erred_at && *rank.erred_at < *at && !LockedOutBy(facts, i).empty())
      return i;
  }
  return first;
}

// The kind of failure that its own output reports.
failures::Kind KindOf(const RankFacts& rank) {
  return rank.known && rank.known->recent ? rank.known->finding.failure->kind : failures::Kind::kUnsaid;
}

// Whether its output reports that memory ran out.
bool RanOutOfMemory(const RankFacts& rank) {
  return KindOf(rank) == failures::Kind::kMemory || SaysMemoryError(rank.tail);
}

// Whether the backend had not ended an operation in time, which a missing rank can also cause.
bool SaysOverrun(const RankFacts& rank) {
  return std::ranges::any_of(rank.reports,
                             [](const PeerReport& report) { return report.id == ErrorId::kOverrun; });
}

ExitClass ClassOf(const Facts& facts, const RankFacts& rank) {
  if (rank.abort) return ExitClass::kUserError;
  const process::Ending& ending = *rank.ending;
  if (ending.stopped_by != 0) return ExitClass::kSignal;
  if (ending.out_of_memory) return ExitClass::kOutOfMemory;
  // An uncaught C++ exception ends a program by SIGABRT.
  const bool by_itself = ending.signal == 0 || ending.signal == SIGABRT;
  const bool differ =
      !facts.calls_differ.empty() || SaysCallsDiffer(rank.tail) || !DifferingMessageText(facts, rank).empty();
  if (by_itself && differ) return ExitClass::kUserError;
  if (!PluginAtFault(rank).empty()) return ExitClass::kPlugin;
  if (by_itself) {
    for (const PeerReport& report : rank.reports) {
      if (!rank.IsOfAnother(report) || report.id == ErrorId::kAborted) continue;
      const std::size_t peer = IndexOf(facts, report.peer);
      const bool came = peer == kNoRank || facts.ranks[peer].joined;
      return came ? ExitClass::kNetwork : ExitClass::kRendezvous;
    }
  }
  if (!by_itself) return ExitClass::kSignal;
  if (RanOutOfMemory(rank)) return ExitClass::kOutOfMemory;
  switch (KindOf(rank)) {
    case failures::Kind::kNetwork:
    case failures::Kind::kConnection: return ExitClass::kNetwork;
    case failures::Kind::kRendezvous: return ExitClass::kRendezvous;
    case failures::Kind::kMemory:
    case failures::Kind::kCalls:
    case failures::Kind::kUnsaid: break;
  }
  return ending.signal == 0 ? ExitClass::kUserError : ExitClass::kSignal;
}

// The rank that stood still while others waited for it.
std::optional<std::size_t> StandingStill(const Facts& facts) {
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    if (facts.ranks[i].ending && facts.ranks[i].ending->stopped_by != 0) return i;
  }
  return std::nullopt;
}

ExitClass ClassOfSuspect(Suspicion::Kind kind, ExitClass of_first, const RankFacts& suspect) {
  switch (kind) {
    case Suspicion::Kind::kStoodStill:
    case Suspicion::Kind::kDiffers:  // a rank that stood still before that call never reached it
      return of_first == ExitClass::kRendezvous ? of_first : ExitClass::kHang;
    case Suspicion::Kind::kAborted: return ExitClass::kUserError;
    case Suspicion::Kind::kErred:
      return RanOutOfMemory(suspect) ? ExitClass::kOutOfMemory : ExitClass::kUserError;
    case Suspicion::Kind::kLeft:
    case Suspicion::Kind::kClosed:
    case Suspicion::Kind::kOverrode: return ExitClass::kUserError;
    case Suspicion::Kind::kStuck: return ExitClass::kPlugin;
    case Suspicion::Kind::kNone: break;
  }
  return of_first;
}

Cause LossCause(const Facts& facts, std::size_t index) {
  return {Cause::Kind::kHost, index,
          facts.losses[index].agent_died ? ExitClass::kLauncher : ExitClass::kNetwork};
}

}  // namespace

std::string_view ClassName(ExitClass exit_class) {
  constexpr std::string_view kNames[] = {"none",           "user-error", "signal",     "out-of-memory",
                                         "rendezvous",     "network",    "preemption", "launcher",
                                         "isolated-ranks", "hang",       "time-limit", "plugin"};
  return kNames[static_cast<std::size_t>(exit_class)];
}

std::optional<ExitClass> ClassNamed(std::string_view name) {
  for (const ExitClass exit_class :
       {ExitClass::kUserError, ExitClass::kSignal, ExitClass::kOutOfMemory, ExitClass::kRendezvous,
        ExitClass::kNetwork, ExitClass::kHang, ExitClass::kLauncher, ExitClass::kPlugin}) {
    if (ClassName(exit_class) == name) return exit_class;
  }
  return std::nullopt;
}

std::string PluginAtFault(const RankFacts& rank) {
  for (const PeerReport& report : rank.reports) {
    const bool fault = report.id == ErrorId::kPluginStuck || report.id == ErrorId::kPluginFault;
    const auto plugin = report.args.find("plugin");
    if ((fault || report.id == ErrorId::kOverrun) && plugin != report.args.end()) return plugin->second;
  }
  return rank.doing ? rank.doing->plugin.substr(0, rank.doing->plugin.find(',')) : "";
}

bool NeededRanksThatHadFinished(const Facts& facts, std::size_t first) {
  const RankFacts& rank = facts.ranks[first];
  if (!SaysPeerIsMissing(rank.tail)) return false;
  bool finished = false;
  for (const RankFacts& other : facts.ranks) {
    if (&other == &rank) continue;
    if (other.FailedByItself()) return false;
    finished = finished || (other.ending && !other.ending->failed() && other.ended_at < rank.ended_at);
  }
  return finished;
}

Cause FindCause(const Facts& facts) {
  if (facts.accomplished) return {};
  // The loss ended the run before any rank failed. Later failures are consequences.
  if (facts.mpi_server_loss) return {Cause::Kind::kMpiServer, 0, ExitClass::kLauncher};
  if (facts.first_failed >= 0) {
    const std::size_t index =
        HolderThatFailedBefore(facts, FollowBlame(facts, static_cast<std::size_t>(facts.first_failed)));
    if (const auto loss = LossOf(facts, facts.ranks[index].host)) return LossCause(facts, *loss);
    if (const auto aborter = AborterOf(facts, facts.ranks[index]))
      return {Cause::Kind::kRank,
              *aborter,
              ExitClass::kUserError,
              index,
              {Suspicion::Kind::kAborted, {*aborter}}};
    const ExitClass exit_class = ClassOf(facts, facts.ranks[index]);
    if (Suspicion overrode = SuspectOfJoining(facts, index); overrode.kind != Suspicion::Kind::kNone) {
      const std::size_t suspect = overrode.indices.front();
      return {Cause::Kind::kRank, suspect, ExitClass::kUserError, index, std::move(overrode)};
    }
    if (exit_class == ExitClass::kNetwork && !facts.apart.empty())
      return {Cause::Kind::kRank, index, exit_class, index};
    const bool outside = FailedOutside(facts.ranks[index]);
    const bool missed = exit_class == ExitClass::kNetwork || exit_class == ExitClass::kRendezvous ||
                        (exit_class == ExitClass::kPlugin && SaysOverrun(facts.ranks[index]));
    if (!outside && missed) {
      if (const auto still = StandingStill(facts))
        return {Cause::Kind::kRank, *still, ExitClass::kSignal, *still};
      if (exit_class == ExitClass::kNetwork && !WaitedForEachOther(facts, index).empty())
        return {Cause::Kind::kRank, index, ExitClass::kHang, index};
      Suspicion suspicion = SuspectOfPlugin(facts);
      if (suspicion.kind == Suspicion::Kind::kNone) suspicion = Suspect(facts, index);
      if (suspicion.kind != Suspicion::Kind::kNone) {
        const std::size_t suspect = suspicion.indices.front();
        const ExitClass its = ClassOfSuspect(suspicion.kind, exit_class, facts.ranks[suspect]);
        return {Cause::Kind::kRank, suspect, its, index, std::move(suspicion)};
      }
      const bool hang = WaitedApart(facts, index) || !LockedOutBy(facts, index).empty();
      if (exit_class == ExitClass::kNetwork && hang)
        return {Cause::Kind::kRank, index, ExitClass::kHang, index};
      if (NeededRanksThatHadFinished(facts, index))
        return {Cause::Kind::kRank, index, ExitClass::kUserError, index};
    }
    const auto& ending = facts.ranks[index].ending;  // unset: it called MPI_Abort
    if (const auto before = ErredBefore(facts, index); before && ending && EndedByItself(*ending)) {
      return {Cause::Kind::kRank,
              *before,
              ClassOfSuspect(Suspicion::Kind::kErred, exit_class, facts.ranks[*before]),
              index,
              {Suspicion::Kind::kErred, {*before}}};
    }
    return {Cause::Kind::kRank, index, exit_class, index};
  }
  if (!facts.losses.empty()) return LossCause(facts, 0);
  if (facts.guard_died) return {Cause::Kind::kGuard, 0, ExitClass::kLauncher};
  if (!facts.time_limit.empty()) return {Cause::Kind::kTimeLimit, 0, ExitClass::kTimeLimit};
  if (!facts.stalled.empty()) return {Cause::Kind::kStalled, 0, ExitClass::kHang, 0, SuspectOfStall(facts)};
  if (facts.isolated_ranks) return {Cause::Kind::kIsolatedRanks, 0, ExitClass::kIsolatedRanks};
  if (facts.interrupt == 0) return {};
  return {Cause::Kind::kInterrupt, 0,
          facts.interrupt == SIGTERM ? ExitClass::kPreemption : ExitClass::kSignal};
}

}  // namespace dtrun::verdict

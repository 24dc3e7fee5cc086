#include "core/verdict/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/verdict/suspect.h"

namespace dtrun::verdict {
namespace {

// The call in which it waited for a peer in vain: "recv from rank 1 on 'world' (...): ...".
struct Missed {
  int peer = -1;
  std::string message;       // "recv from", "send to"; empty: it was a collective
  std::string communicator;  // its name
};

std::optional<Missed> MissedCall(const RankFacts& rank) {
  constexpr std::string_view kOn = " on '";
  for (const PeerReport& report : rank.reports) {
    const std::size_t on = report.what.find(kOn);
    if (!rank.IsOfAnother(report) || on == report.what.npos) continue;
    Missed missed{report.peer, {}, report.what.substr(on + kOn.size())};
    missed.communicator.resize(std::min(missed.communicator.find('\''), missed.communicator.size()));
    for (const char* const message : {"recv from", "send to"}) {
      if (report.what.starts_with(message)) missed.message = message;
    }
    return missed;
  }
  return std::nullopt;
}

// Whether the peer's call can never answer: both receive, both send, or both are in collectives that not all
// of the same ranks take part in.
bool ExcludeEachOther(const Missed& mine, const Missed& theirs) {
  if (!mine.message.empty() || !theirs.message.empty()) return mine.message == theirs.message;
  return mine.communicator != theirs.communicator;
}

}  // namespace

bool WaitInDifferentCollectives(const std::vector<RankDoing>& ranks) {
  constexpr std::string_view kStems[] = {"allreduce", "allgather", "alltoall", "barrier", "bcast",
                                         "broadcast", "gather",    "reduce",   "scatter"};
  std::set<std::string> calls;
  for (const RankDoing& doing : ranks) {
    const std::string_view phrase = doing.phrase;
    const std::size_t end = phrase.find(" at ");
    if (doing.stand != stacks::Stand::kWaits || !phrase.starts_with("in ") || end == phrase.npos)
      return false;
    const std::string call = stacks::Plain(phrase.substr(3, end - 3));
    const bool collective =
        std::ranges::any_of(kStems, [&](std::string_view stem) { return call.find(stem) != call.npos; });
    if (!collective) return false;
    calls.insert(call);
  }
  return calls.size() > 1;
}

bool WaitedApart(const Facts& facts, std::size_t first) {
  const std::vector<RankDoing> places = PlacesOf(facts);
  const bool all = facts.ranks.size() > 1 && places.size() == facts.ranks.size() &&
                   std::ranges::all_of(
                       places, [](const RankDoing& doing) { return doing.stand == stacks::Stand::kWaits; });
  if (!all || std::ranges::any_of(facts.ranks, [](const RankFacts& rank) { return rank.count > 1; }))
    return false;
  const bool apart = std::ranges::any_of(
      places, [&](const RankDoing& doing) { return doing.phrase != places.front().phrase; });
  const auto waited = [](const RankFacts& rank) {
    return SaysTimeOut(rank.before) || (rank.ending && rank.signal_sent == 0 && SaysTimeOut(rank.tail));
  };
  return apart && (SaysTimeOut(facts.ranks[first].tail) || std::ranges::any_of(facts.ranks, waited));
}

std::vector<int> WaitedForEachOther(const Facts& facts, std::size_t first) {
  std::vector<int> ranks;
  std::optional<Missed> missed = MissedCall(facts.ranks[first]);
  while (missed) {
    if (const auto begin = std::ranges::find(ranks, missed->peer); begin != ranks.end()) {
      ranks.erase(ranks.begin(), begin);
      std::ranges::sort(ranks);
      return ranks;
    }
    ranks.push_back(missed->peer);
    const auto peer = std::ranges::find(facts.ranks, missed->peer, &RankFacts::rank);
    const std::optional<Missed> next = peer == facts.ranks.end() ? std::nullopt : MissedCall(*peer);
    missed = next && ExcludeEachOther(*missed, *next) ? next : std::nullopt;
  }
  return {};
}

std::vector<int> LockedOutBy(const Facts& facts, std::size_t index) {
  const RankFacts& holder = facts.ranks[index];
  std::vector<int> out;
  for (const RankFacts& rank : facts.ranks) {
    if (rank.locked_out_by >= holder.rank && rank.locked_out_by < holder.rank + holder.count)
      out.push_back(rank.rank);
  }
  return out;
}

}  // namespace dtrun::verdict

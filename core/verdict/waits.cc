#include "core/verdict/waits.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/verdict/missed.h"
#include "core/verdict/suspect.h"

namespace dtrun::verdict {
namespace {

// Whether the two calls can never match: both receive, both send, or both are collectives of different
// communicators.
bool ExcludeEachOther(const MissedCall& mine, const MissedCall& theirs) {
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
  const std::set<int> members = MembersMissed(facts, first);
  const std::vector<RankDoing> places = PlacesOf(facts);
  if (facts.ranks.size() < 2 || places.size() != facts.ranks.size()) return false;
  std::set<std::string> phrases;
  bool timed_out = SaysTimeOut(facts.ranks[first].tail);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (rank.count > 1) return false;
    if (!IsAmong(members, rank)) continue;
    if (places[i].stand != stacks::Stand::kWaits) return false;
    phrases.insert(places[i].phrase);
    timed_out = timed_out || SaysTimeOut(rank.before) ||
                (rank.ending && rank.signal_sent == 0 && SaysTimeOut(rank.tail));
  }
  return phrases.size() > 1 && timed_out;
}

std::vector<int> WaitedForEachOther(const Facts& facts, std::size_t first) {
  std::vector<int> ranks;
  std::optional<MissedCall> missed = MissedCallOf(facts.ranks[first]);
  while (missed) {
    if (const auto begin = std::ranges::find(ranks, missed->peer); begin != ranks.end()) {
      ranks.erase(ranks.begin(), begin);
      std::ranges::sort(ranks);
      return ranks;
    }
    ranks.push_back(missed->peer);
    const auto peer = std::ranges::find(facts.ranks, missed->peer, &RankFacts::rank);
    const std::optional<MissedCall> next = peer == facts.ranks.end() ? std::nullopt : MissedCallOf(*peer);
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

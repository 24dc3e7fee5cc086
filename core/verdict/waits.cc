#include "core/verdict/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/stacks/doing.h"
#include "core/verdict/awaiting.h"
#include "core/verdict/facts.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

// Quiet ranks are looked at more often than this.
constexpr std::chrono::seconds kLookedWithin{30};

// "allreduce" of a rank "in dist.all_reduce at t.py:3"; empty: it is in no call that is known.
std::string CallOf(const RankDoing& doing) {
  if (doing.call && doing.call->under_way && (doing.call->message || doing.call->polled || !doing.in_source))
    return doing.call->name;
  const std::string_view phrase = doing.phrase;
  const std::size_t end = phrase.find(" at ");
  if (!phrase.starts_with("in ") || end == phrase.npos) return {};
  return stacks::Plain(phrase.substr(3, end - 3));
}

// Whether two ranks are in calls of different communicators, of which each may have other members.
bool AreInDifferentGroups(const std::vector<RankDoing>& ranks) {
  std::set<std::string> groups;
  for (const RankDoing& doing : ranks)
    if (doing.call && doing.call->under_way) groups.insert(doing.call->group);
  return groups.size() > 1;
}

bool IsCollective(std::string_view call) {
  constexpr std::string_view kStems[] = {"allreduce", "allgather", "alltoall", "backward", "barrier", "bcast",
                                         "broadcast", "finalize",  "gather",   "reduce",   "scatter"};
  return std::ranges::any_of(kStems, [&](std::string_view stem) { return call.find(stem) != call.npos; });
}

// Where all ranks wait in a receive of their own or in a collective: that lasts unless a rank sends. Empty:
// otherwise.
std::string ReceiversText(const std::vector<RankDoing>& places) {
  const auto waits = [](const RankDoing& doing) {
    return doing.stand == stacks::Stand::kWaits && doing.waits_for < 0;
  };
  if (places.size() < 2 || !std::ranges::all_of(places, waits)) return {};
  std::vector<int> receivers;
  for (const RankDoing& doing : places) {
    const std::string call = CallOf(doing);
    if (call.find("recv") != call.npos)
      receivers.push_back(doing.rank);
    else if (!IsCollective(call))
      return {};
  }
  if (receivers.empty()) return {};
  const auto receives = [&](int rank) { return std::ranges::count(receivers, rank) > 0; };
  std::string senders;
  for (const RankDoing& doing : places) {
    if (!receives(doing.rank) || !doing.awaited || doing.awaited->ranks.size() != 1) continue;
    const int sender = doing.awaited->ranks.front();
    const bool lives = std::ranges::find(places, sender, &RankDoing::rank) != places.end();
    if (lives && !receives(sender))
      senders += fmt::format("{}rank {} has not sent what rank {} waits for", senders.empty() ? "" : ", ",
                             sender, doing.rank);
  }
  if (!senders.empty())
    return fmt::format("all ranks wait, {} in a receive: if that lasts, {}", FoldRanks(receivers), senders);
  if (receivers.size() == places.size())
    return "all ranks wait in a receive: if that lasts, no rank has sent what they wait for";
  return fmt::format("all ranks wait, {} in a receive: if that lasts, no rank has sent what {} for",
                     FoldRanks(receivers), receivers.size() == 1 ? "it waits" : "they wait");
}

// Whether the two calls can never match: both receive, both send, or both are collectives of different
// communicators.
bool ExcludeEachOther(const MissedCall& mine, const MissedCall& theirs) {
  if (!mine.message.empty() || !theirs.message.empty()) return mine.message == theirs.message;
  return mine.communicator != theirs.communicator;
}

// What its recorder knows of one rank.
void AddCallTo(RankDoing* doing) {
  using stacks::Stand;
  if (!doing->call) return;
  if (doing->MayPoll()) doing->stand = Stand::kElsewhere;
  const bool unknown = doing->stand == Stand::kUnknown;
  if (!doing->call->under_way) {
    if (unknown) doing->stand = Stand::kElsewhere;
    if (doing->stand == Stand::kElsewhere && doing->beside.empty()) doing->beside = doing->call->Brief();
    return;
  }
  // Between two looks at it.
  if (doing->naps && doing->call->polled && doing->stand == Stand::kElsewhere) doing->stand = Stand::kWaits;
  // A rank that computes may have a call under way.
  if (unknown && doing->phrase != stacks::kRunning) {
    doing->stand = Stand::kWaits;
    doing->phrase = "in " + doing->call->Text();
  } else if (doing->stand != Stand::kElsewhere && doing->beside.empty()) {
    doing->beside = doing->call->message ? doing->call->Text() : doing->call->Brief();
  }
}

bool WaitedUntilALimit(std::string_view what) {
  constexpr std::string_view kWords[] = {"did not end within", "did not finish within", "timed out",
                                         " gave up: "};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return what.find(word) != what.npos; });
}

// Converts the "2" of "rank 2" in the communicator to a rank of the world.
int InWorld(std::string_view number, const std::vector<int>& members) {
  const int rank = NumberOf<int>(number).value_or(-1);
  if (rank < 0) return -1;
  if (members.empty()) return rank;
  return static_cast<std::size_t>(rank) < members.size() ? members[static_cast<std::size_t>(rank)] : -1;
}

// "recv from rank 1 on 'world' (...)...", "allreduce #4 on 'world' (...)..."
std::optional<MissedCall> CallIn(const PeerReport& report) {
  constexpr std::string_view kOn = " on '";
  const std::string_view what = report.what;
  const std::size_t on = what.find(kOn);
  if (on == what.npos || !WaitedUntilALimit(what)) return std::nullopt;
  const std::string_view call = what.substr(0, on);
  std::string_view name = what.substr(on + kOn.size());
  name = name.substr(0, name.find('\''));
  for (const std::string_view message : {"recv from", "send to"}) {
    if (!call.starts_with(message)) continue;
    const std::size_t space = call.rfind(' ');
    const int peer = InWorld(call.substr(space + 1), report.members);
    if (peer < 0) return std::nullopt;  // from any rank
    std::string_view about = what.substr(std::min(on + kOn.size() + name.size() + 1, what.size()));
    const std::size_t end = about.find(')');
    about = about.starts_with(" (") && end != about.npos ? about.substr(2, end - 2) : "";
    return MissedCall{peer, std::string(message), std::string(name), std::string(about)};
  }
  const std::size_t space = call.find(' ');
  const bool collective =
      space != call.npos && call.substr(space).starts_with(" #") && call.find(' ', space + 1) == call.npos;
  if (!collective) return std::nullopt;
  return MissedCall{report.peer, "", std::string(name), ""};
}

}  // namespace

std::string PlacesHint(const std::vector<RankDoing>& places, const char* otherwise) {
  if (ReceiversText(places).empty()) return otherwise;
  return "look for the send that is missing: a receive needs one of that rank to this one, with the same tag";
}

bool WaitInDifferentCollectives(const std::vector<RankDoing>& ranks) {
  if (AreInDifferentGroups(ranks)) return false;
  std::set<std::string> calls;
  for (const RankDoing& doing : ranks) {
    const std::string call = CallOf(doing);
    if (doing.stand != stacks::Stand::kWaits || !IsCollective(call)) return false;
    calls.insert(call);
  }
  return calls.size() > 1;
}

void AddCalls(std::vector<RankDoing>* ranks) {
  for (RankDoing& doing : *ranks) {
    AddCallTo(&doing);
    // Of a handle: a collective's, or that of one message.
    const std::string call = doing.stand == stacks::Stand::kWaits && !doing.awaited ? CallOf(doing) : "";
    if (call == "wait" || call == "waitall") doing.awaited = contract::Awaited{.either = true};
  }
  ResolveAwaited(ranks);
}

std::string ExitedText(const std::vector<int>& exited) {
  return exited.empty() ? "" : FoldRanks(exited) + (exited.size() == 1 ? " has exited" : " have exited");
}

std::string DifferingCallsText(const std::vector<RankDoing>& places) {
  using Group = std::pair<std::string, std::uint64_t>;
  std::map<Group, std::map<std::string, std::vector<int>>> calls;  // ranks by signature
  for (const RankDoing& doing : places) {
    if (!doing.call || !doing.call->under_way || doing.call->signature.empty()) continue;
    calls[{doing.call->group, doing.call->number}][doing.call->signature].push_back(doing.rank);
  }
  const auto differs = std::ranges::find_if(calls, [](const auto& one) { return one.second.size() > 1; });
  if (differs == calls.end()) return {};
  std::string out;
  for (const auto& [signature, ranks] : differs->second) {
    out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", FoldRanks(ranks),
                       ranks.size() == 1 ? "calls" : "call", signature);
  }
  const auto& [group, number] = differs->first;
  return fmt::format("collective #{} on '{}' is not the same on all ranks: {}", number, group, out);
}

std::string WhoWaitsText(const std::vector<RankDoing>& places, const std::vector<int>& exited, bool lasting) {
  if (std::string differing = DifferingCallsText(places); !differing.empty()) return differing;
  if (WaitInDifferentCollectives(places))
    return "all ranks wait, in different collectives: if that lasts, none can complete; every rank has to "
           "call the "
           "same ones, in the same order";
  if (std::string receivers = ReceiversText(places); exited.empty() && !receivers.empty()) return receivers;
  std::string out;
  const auto add = [&out](const std::vector<int>& ranks, const std::string& what) {
    out += fmt::format("{}{} {} for {}", out.empty() ? "" : "; ", FoldRanks(ranks),
                       ranks.size() == 1 ? "waits" : "wait", what);
  };
  std::map<int, std::vector<int>> locked_out;  // by the rank that holds the lock
  for (const RankDoing& doing : places)
    if (doing.waits_for >= 0) locked_out[doing.waits_for].push_back(doing.rank);
  for (const auto& [holder, ranks] : locked_out) add(ranks, fmt::format("a lock that rank {} holds", holder));
  const Awaiting awaiting(places);
  std::map<std::set<int>, std::vector<int>> waits;  // by those that are late
  bool unclear = false;
  for (const auto& [from, found] : awaiting.Ways()) {
    unclear = unclear || found.unclear;
    if (found.unclear || (found.late.empty() && !found.locked)) continue;
    std::vector<int>& ranks = waits[found.late];
    ranks.insert(ranks.end(), from.begin(), from.end());
  }
  for (auto& [late, ranks] : waits) {
    std::ranges::sort(ranks);
    add(ranks, late.empty() ? "the ranks that wait for the lock" : FoldRanks({late.begin(), late.end()}));
  }
  if (!out.empty() || unclear) return out;
  const auto in_collective = [lasting](const RankDoing& doing) {
    if (doing.call && doing.call->under_way) return !doing.call->message;
    return lasting && IsCollective(CallOf(doing));
  };
  if (const std::vector<int> circle = awaiting.Circle(in_collective); !circle.empty()) {
    return fmt::format(
        "{} wait for each other, in collectives of different communicators: if that lasts, none "
        "of them can complete; all ranks have to call those in the same order",
        FoldRanks(circle));
  }
  std::vector<int> all;
  for (const auto& [from, found] : awaiting.Ways()) all.insert(all.end(), from.begin(), from.end());
  std::ranges::sort(all);
  if (all.empty() || exited.empty()) return {};
  return fmt::format("{} {} for others, and {}", FoldRanks(all), all.size() == 1 ? "waits" : "wait",
                     ExitedText(exited));
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
    const bool its =
        rank.lock && rank.lock->holder >= holder.rank && rank.lock->holder < holder.rank + holder.count;
    if (its && rank.lock->seen >= holder.erred_at.value_or(holder.ended_at) - kLookedWithin)
      out.push_back(rank.rank);
  }
  return out;
}

std::optional<MissedCall> MissedCallOf(const RankFacts& rank) {
  for (const PeerReport& report : rank.reports) {
    std::optional<MissedCall> call = rank.IsOfAnother(report) ? CallIn(report) : std::nullopt;
    if (call) return call;
  }
  return std::nullopt;
}

std::string DifferingMessageText(const Facts& facts, const RankFacts& rank) {
  const std::optional<MissedCall> own = MissedCallOf(rank);
  const RankFacts* const peer = own ? facts.Find(own->peer) : nullptr;
  const std::optional<MissedCall> other = peer == nullptr ? std::nullopt : MissedCallOf(*peer);
  if (!other || other->peer != rank.blamed() || own->communicator != other->communicator) return {};
  if (own->message == other->message || own->what == other->what || own->what.empty() || other->what.empty())
    return {};
  const bool sends = own->message == "send to";
  return fmt::format("rank {} sends ({}), rank {} receives ({})", sends ? other->peer : own->peer,
                     sends ? own->what : other->what, sends ? own->peer : other->peer,
                     sends ? other->what : own->what);
}

std::set<int> MembersMissed(const Facts& facts, std::size_t first) {
  std::set<int> members;
  std::set<std::size_t> seen;
  for (std::vector<std::size_t> next = {first}; !next.empty();) {
    const RankFacts& rank = facts.ranks[next.back()];
    const bool fresh = seen.insert(next.back()).second;
    next.pop_back();
    for (const PeerReport& report : rank.reports) {
      if (!fresh || !rank.IsOfAnother(report)) continue;
      std::set<int> missed(report.members.begin(), report.members.end());
      if (const auto call = CallIn(report); call && !call->message.empty())
        missed = {rank.blamed(), call->peer};  // no other rank can end it
      if (missed.empty()) return {};
      members.insert(missed.begin(), missed.end());
      for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
        if (IsAmong(missed, facts.ranks[i])) next.push_back(i);
      }
    }
  }
  return members;
}

bool IsAmong(const std::set<int>& members, const RankFacts& process) {
  const auto at = members.lower_bound(process.rank);
  return members.empty() || (at != members.end() && *at < process.rank + process.count);
}

}  // namespace dtrun::verdict

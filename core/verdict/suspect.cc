#include "core/verdict/suspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/error_id.h"
#include "core/base/text.h"
#include "core/failures/finding.h"
#include "core/stacks/doing.h"
#include "core/verdict/aborter.h"
#include "core/verdict/awaiting.h"
#include "core/verdict/recognise.h"
#include "core/verdict/traceback.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

// For comparing errors: ranks, addresses and times differ.
std::string WithoutNumbers(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!IsDigit(c)) out.push_back(c);
    if (IsDigit(c) && (out.empty() || out.back() != '#')) out.push_back('#');
  }
  return out;
}

std::string Joined(const std::vector<std::string>& lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

// Errors of dtrun's Python calls (python/dtrun/errors.py): a rank was lost or did not join.
bool IsOwnErrorOfAPeer(std::string_view error) {
  return error.starts_with("dtrun.errors.Timeout: ") || error.starts_with("dtrun.errors.RemoteFailure: ");
}

bool IsOfAConnection(const failures::Finding& finding) {
  return finding.failure->kind == failures::Kind::kConnection;
}

bool IsOfAPeer(const failures::Finding& finding) {
  return finding.failure->kind == failures::Kind::kNetwork ||
         finding.failure->kind == failures::Kind::kRendezvous;
}

bool EndsWhereRanksWait(const std::vector<std::string>& lines) {
  const auto place = PlaceIn(lines);
  return place && place->stand == stacks::Stand::kWaits;
}

// What it printed before others failed. Later output may be a consequence of dtrun's signal.
const std::vector<std::string>& LinesOf(const RankFacts& rank) {
  return rank.FailedByItself() ? rank.tail : rank.before;
}

// Whether a living rank has caught the error that it printed: it waits for others again, runs lines of the
// program that handle no error, or has printed more since.
bool HasGoneOn(const RankFacts& rank) {
  if (!rank.doing || rank.FailedByItself()) return false;
  if (rank.doing->phrase.starts_with("in destroy_process_group ")) return false;
  if (rank.doing->stand == stacks::Stand::kElsewhere) {
    return SaysMoreThanItsError(LinesOf(rank)) || (!rank.doing->may_handle && !EndedAThread(LinesOf(rank)));
  }
  return rank.doing->stand == stacks::Stand::kWaits || rank.doing->stand == stacks::Stand::kMayWait;
}

std::optional<std::size_t> Erred(const Facts& facts, std::size_t first, const std::set<int>& members) {
  const std::string seen = WithoutNumbers(ErrorIn(facts.ranks[first].tail));
  const bool differ =
      SaysCallsDiffer(facts.ranks[first].tail);  // each of the ranks may say so of its own call
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    if (!IsAmong(members, facts.ranks[i])) continue;
    const std::string error = ErrorIn(LinesOf(facts.ranks[i]));
    if (i == first || error.empty() || WithoutNumbers(error) == seen || HasGoneOn(facts.ranks[i])) continue;
    if (FailedByAbort(facts.ranks[i])) continue;
    if (differ && SaysCallsDiffer(LinesOf(facts.ranks[i]))) continue;
    if (!SaysPeerIsMissing({error}) && !SaysPeerIsMissing(LinesOf(facts.ranks[i]))) return i;
  }
  return std::nullopt;
}

// The ranks that others name in reports of a timeout, and that made no such report themselves, at a known
// place that is no call which waits.
std::vector<std::size_t> Missing(const Facts& facts) {
  std::set<int> named;
  for (const RankFacts& rank : facts.ranks) {
    const std::optional<MissedCall> missed = MissedCallOf(rank);
    if (missed && missed->message.empty()) named.insert(missed->peer);
  }
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (!named.contains(rank.rank) || !rank.reports.empty() || !rank.doing || rank.count > 1 || rank.lock)
      continue;
    const bool known = rank.doing->phrase != stacks::kUnknownPlace && !rank.doing->phrase.empty();
    if (known && rank.doing->stand != stacks::Stand::kWaits) out.push_back(i);
  }
  return out;
}

// The peer that the rank reported, if it was alive and had no trouble itself: it had left their communicator.
const RankFacts* LivingPeerOf(const Facts& facts, const RankFacts& rank) {
  for (const PeerReport& report : rank.reports) {
    if (!rank.IsOfAnother(report) || report.id != ErrorId::kPeerFailed) continue;
    const auto peer = std::ranges::find(facts.ranks, report.peer, &RankFacts::rank);
    if (peer != facts.ranks.end() && peer->reports.empty() && (!peer->ending || peer->signal_sent != 0) &&
        !SaysPeerIsMissing(peer->before))
      return &*peer;
  }
  return nullptr;
}

std::vector<std::size_t> Left(const Facts& facts, std::size_t first, const std::set<int>& members) {
  if (const RankFacts* const peer = LivingPeerOf(facts, facts.ranks[first])) {
    if (!peer->left) return {};  // else it may wait for the others in MPI_Finalize
    return {static_cast<std::size_t>(peer - facts.ranks.data())};
  }
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (!IsAmong(members, rank)) continue;
    if (!rank.ending || rank.ending->failed() || rank.signal_sent != 0) continue;
    // A leaving rank closes its connections before it exits. A rank that lost a peer prints so.
    if (rank.ended_at < facts.ranks[first].ended_at || !SaysPeerIsMissing(rank.tail)) left.push_back(i);
  }
  return left.size() <= facts.ranks.size() - left.size() ? left : std::vector<std::size_t>();
}

bool Waited(const RankFacts& rank) {
  return SaysPeerIsMissing(rank.before) || !rank.reports.empty() || rank.lock ||
         (rank.doing && rank.doing->stand == stacks::Stand::kWaits);
}

// Whether the place is no work that only takes long.
bool IsAsleep(std::string_view phrase) {
  constexpr std::string_view kCalls[] = {"in time.sleep ", "in signal.pause ", "in nanosleep ",
                                         "in clock_nanosleep "};
  return std::ranges::any_of(kCalls, [&](std::string_view call) { return phrase.starts_with(call); });
}

// `first`: the rank that failed first and reported that it waited. Considers only `members`.
std::vector<std::size_t> StoodStill(const Facts& facts, std::optional<std::size_t> first,
                                    const std::set<int>& members = {}) {
  std::map<std::string, std::vector<std::size_t>> places;  // of the ranks that did not wait
  std::size_t elsewhere = 0, others = first ? 1 : 0;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (first == i || !rank.doing || rank.count > 1 || !IsAmong(members, rank)) continue;
    const bool suspect = rank.doing->stand == stacks::Stand::kElsewhere && !Waited(rank);
    ++(suspect ? elsewhere : others);
    if (suspect) places[rank.doing->phrase].push_back(i);
  }
  std::vector<std::size_t> out;
  const bool asleep = std::ranges::all_of(places, [](const auto& place) { return IsAsleep(place.first); });
  if (elsewhere <= others || asleep) {
    for (const auto& [place, indices] : places) out.insert(out.end(), indices.begin(), indices.end());
    std::ranges::sort(out);
    return out;
  }
  // Most ranks are elsewhere, each at a different place: not a common slow step.
  if (places.size() == elsewhere) {
    for (const auto& [place, indices] : places) out.push_back(indices.front());
    std::ranges::sort(out);
    return out;
  }
  // Otherwise only a single rank that differs from all others is evidence.
  if (places.size() != 2) return {};
  for (const auto& [place, indices] : places) {
    if (indices.size() == 1 && elsewhere > 2) return indices;
  }
  return {};
}

// Those of `still` that others waited for, as far as that is known.
std::vector<std::size_t> Awaited(const Facts& facts, std::vector<std::size_t> still) {
  const std::vector<RankDoing> places = PlacesOf(facts);
  const Awaiting awaiting(places);
  std::set<int> late;
  for (const Awaiting::Way& way : awaiting.Ways()) late.insert(way.found.late.begin(), way.found.late.end());
  if (!late.empty())
    std::erase_if(still, [&](std::size_t index) { return !late.contains(facts.ranks[index].rank); });
  return still;
}

// For the peer of a message: what that does is to blame.
bool WaitsForOne(const RankFacts& rank) {
  return rank.doing && rank.doing->awaited && rank.doing->awaited->ranks.size() == 1;
}

// All waited, but exactly one of them in a different call.
std::optional<std::size_t> Differs(const Facts& facts, const std::set<int>& members = {}) {
  const std::vector<RankDoing> places = PlacesOf(facts);
  if (places.size() != facts.ranks.size()) return std::nullopt;
  std::map<std::string, std::vector<std::size_t>> by_place;
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!IsAmong(members, facts.ranks[i])) continue;
    ++waiting;
    if (places[i].stand != stacks::Stand::kWaits || facts.ranks[i].count > 1) return std::nullopt;
    by_place[places[i].phrase].push_back(i);
  }
  if (by_place.size() != 2 || waiting < 3) return std::nullopt;
  for (const auto& [place, indices] : by_place) {
    if (indices.size() == 1) return indices.front();
  }
  return std::nullopt;
}

Suspicion Overrode(const Facts& facts) {
  const auto changes = [](const RankFacts& rank) {
    std::set<std::pair<std::string, std::string>> changed;
    for (const Override& one : rank.overrides) changed.insert({one.name, one.now});
    return changed;
  };
  Suspicion found{Suspicion::Kind::kOverrode};
  bool alike = true;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    if (!facts.ranks[i].overrides.empty()) found.indices.push_back(i);
    alike = alike && changes(facts.ranks[i]) == changes(facts.ranks.front());
  }
  return alike ? Suspicion() : found;
}

// The common part of two outputs that end in the same error.
std::string KindOfError(const std::vector<std::string>& lines) {
  const auto findings = failures::FindFailures(Joined(lines));
  const failures::Finding* const foremost = failures::Foremost(findings);
  if (foremost != nullptr && (IsOfAPeer(*foremost) || IsOfAConnection(*foremost)))
    return std::string(foremost->failure->id);
  return WithoutNumbers(ErrorIn(lines));
}

// Key for finding ranks that failed the same way: the error, or else how it ended and its last line.
std::string KindOfFailure(const RankFacts& rank) {
  if (std::string error = KindOfError(rank.tail); !error.empty()) return error;
  if (!rank.FailedByItself() || !EndedByItself(*rank.ending)) return {};
  const auto last = std::ranges::find_if(rank.tail.rbegin(), rank.tail.rend(),
                                         [](const std::string& line) { return !line.empty(); });
  if (last == rank.tail.rend()) return {};
  return fmt::format("{} {}", rank.ending->code, WithoutNumbers(*last));
}

}  // namespace

bool FailedOutside(const RankFacts& rank) {
  return rank.reports.empty() && rank.known && IsOfAConnection(rank.known->finding) &&
         !SaysPeerIsMissing(rank.tail);
}

Suspicion Suspect(const Facts& facts, std::size_t first) {
  using Kind = Suspicion::Kind;
  const std::set<int> members = MembersMissed(facts, first);
  auto still = StoodStill(facts, first, members);
  const auto erred = Erred(facts, first, members);
  // If its place does not show whether it has gone on, a rank that stands elsewhere is the better evidence.
  const bool unsure = erred && !still.empty() && facts.ranks[*erred].doing &&
                      facts.ranks[*erred].doing->stand == stacks::Stand::kUnknown;
  if (erred && !unsure) return {Kind::kErred, {*erred}};
  auto left = Left(facts, first, members);
  // A lost connection points to the rank that left; a timeout points to the rank that stands still.
  if (!left.empty() && !SaysTimeOut(facts.ranks[first].tail)) return {Kind::kLeft, std::move(left)};
  const bool closed = facts.ranks[first].reports.empty() && !SaysTimeOut(facts.ranks[first].tail);
  if (!still.empty()) return {closed ? Kind::kClosed : Kind::kStoodStill, std::move(still)};
  if (auto missing = Missing(facts); !missing.empty()) return {Kind::kStoodStill, std::move(missing)};
  if (const auto differs = Differs(facts, members)) return {Kind::kDiffers, {*differs}};
  if (!left.empty()) return {Kind::kLeft, std::move(left)};
  return {};
}

Suspicion SuspectOfJoining(const Facts& facts, std::size_t first) {
  return FailedToJoin(facts.ranks[first]) ? Overrode(facts) : Suspicion();
}

Suspicion SuspectOfPlugin(const Facts& facts) {
  Suspicion found;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i)
    if (facts.ranks[i].doing && !facts.ranks[i].doing->plugin.empty()) found.indices.push_back(i);
  if (!found.indices.empty()) found.kind = Suspicion::Kind::kStuck;
  return found;
}

std::optional<std::size_t> ErredBefore(const Facts& facts, std::size_t first) {
  constexpr std::chrono::seconds kExitsWithin{5};
  const auto said = [](const RankFacts& rank) {
    return ErrorIn(rank.tail.empty() ? rank.before : rank.tail);
  };
  const RankFacts& other = facts.ranks[first];
  const std::string seen = WithoutNumbers(said(other));
  const bool differ = SaysCallsDiffer(LinesOf(other));
  if (!other.erred_at || seen.empty()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < facts.ranks.size(); ++i) {
    const RankFacts& rank = facts.ranks[i];
    if (!rank.erred_at || *rank.erred_at >= facts.ranks[found.value_or(first)].erred_at ||
        *rank.erred_at + kExitsWithin < other.erred_at || (rank.ending && !rank.ending->failed()) ||
        FailedByAbort(rank))
      continue;
    const std::vector<std::string>& lines = LinesOf(rank);
    const std::string error = ErrorIn(lines);
    const bool same = WithoutNumbers(error) == seen || (differ && SaysCallsDiffer(lines));
    if (!error.empty() && !same && !HasGoneOn(rank) && !SaysPeerIsMissing(lines)) found = i;
  }
  return found;
}

bool FailedToJoin(const RankFacts& rank) {
  if (!rank.reports.empty()) return false;  // the error comes from dtrun's own library
  const auto place = PlaceIn(rank.tail);
  return (place && place->joins) || (rank.known && rank.known->recent &&
                                     rank.known->finding.failure->kind == failures::Kind::kRendezvous);
}

Suspicion SuspectOfStall(const Facts& facts) {
  using Kind = Suspicion::Kind;
  const bool joining =
      std::ranges::any_of(facts.ranks, [](const RankFacts& rank) { return rank.doing && rank.doing->joins; });
  if (Suspicion overrode = joining ? Overrode(facts) : Suspicion(); overrode.kind != Kind::kNone)
    return overrode;
  if (std::ranges::none_of(facts.ranks, Waited)) return {};
  if (auto still = Awaited(facts, StoodStill(facts, std::nullopt)); !still.empty())
    return {Kind::kStoodStill, std::move(still)};
  const auto differs = Differs(facts);
  if (differs && !WaitsForOne(facts.ranks[*differs])) return {Kind::kDiffers, {*differs}};
  return {};
}

bool SaysItWaited(const PeerReport& report) {
  const auto says = [&](std::string_view words) { return report.what.find(words) != report.what.npos; };
  if (report.id == ErrorId::kPeerFailed) return says(" gave up: ");  // it repeats that rank's report
  return report.id == ErrorId::kNone ? says("timed out") || says("within")
                                     : report.id == ErrorId::kTimeout || report.id == ErrorId::kOverrun;
}

bool SaysPeerIsMissing(const std::vector<std::string>& lines) {
  if (IsOwnErrorOfAPeer(ErrorIn(lines))) return true;
  const auto findings = failures::FindFailures(Joined(lines));
  const failures::Finding* const foremost = failures::Foremost(findings);
  if (foremost == nullptr || RaisedByTheProgram(lines)) return false;
  return IsOfAPeer(*foremost) || (IsOfAConnection(*foremost) && EndsWhereRanksWait(lines));
}

bool SaysCallsDiffer(const std::vector<std::string>& lines) {
  return std::ranges::any_of(failures::FindFailures(Joined(lines)), [](const failures::Finding& finding) {
    return finding.failure->kind == failures::Kind::kCalls;
  });
}

bool SaysTimeOut(const std::vector<std::string>& lines) {
  if (!SaysPeerIsMissing(lines)) return false;
  const std::string text = Lowercase(Joined(lines));
  constexpr std::string_view kWords[] = {"timed out", "timeout", "time out"};
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

std::vector<RankDoing> PlacesOf(const Facts& facts) {
  std::vector<RankDoing> places;
  for (const RankFacts& rank : facts.ranks) {
    places.insert(places.end(), rank.inside.begin(), rank.inside.end());
    if (!rank.inside.empty()) continue;
    RankDoing doing = rank.doing.value_or(RankDoing());
    doing.rank = rank.rank;
    // Output after it was seen elsewhere is a consequence of the others' end.
    const bool elsewhere = doing.stand == stacks::Stand::kElsewhere && !Waited(rank);
    std::string gave_up = !elsewhere && SaysPeerIsMissing(rank.tail) ? ErrorPlaceIn(rank.tail) : "";
    if (!gave_up.empty() && doing.stand != stacks::Stand::kWaits) {
      doing.phrase = std::move(gave_up);
      doing.beside.clear();
      doing.stand = stacks::Stand::kWaits;
    }
    if (!doing.phrase.empty()) places.push_back(std::move(doing));
  }
  return places;
}

std::vector<int> FailedAlike(const Facts& facts, std::size_t index) {
  const std::string failure = KindOfFailure(facts.ranks[index]);
  std::vector<int> ranks;
  for (const RankFacts& rank : facts.ranks) {
    if (!failure.empty() && rank.count == 1 && KindOfFailure(rank) == failure) ranks.push_back(rank.rank);
  }
  return ranks;
}

}  // namespace dtrun::verdict

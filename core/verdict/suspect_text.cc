#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/stacks/doing.h"
#include "core/verdict/aborter.h"
#include "core/verdict/overrides.h"
#include "core/verdict/text.h"
#include "core/verdict/traceback.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"

namespace dtrun::verdict {
namespace {

std::string StandText(const Facts& facts, const std::vector<std::size_t>& suspects) {
  const std::vector<RankDoing> places = PlacesOf(facts);
  std::vector<int> named;
  for (const std::size_t index : suspects) named.push_back(facts.ranks[index].rank);
  std::vector<RankDoing> accused;
  std::set<std::string> phrases;  // of the others
  bool waited = true;
  for (const RankDoing& doing : places) {
    const bool suspect = std::ranges::find(named, doing.rank) != named.end();
    if (suspect) accused.push_back(doing);
    if (suspect) continue;
    phrases.insert(doing.Said());
    waited = waited && (doing.stand == stacks::Stand::kWaits || doing.stand == stacks::Stand::kMayWait);
  }
  const std::string text = PlacesText(accused, {}, {"was ", "were "});
  if (phrases.size() == 1 && waited) return text + "; the others waited " + *phrases.begin();
  return phrases.empty() ? text : text + "; the others: " + PlacesText(places, named);
}

}  // namespace

const char* SuspicionName(Suspicion::Kind kind) {
  switch (kind) {
    case Suspicion::Kind::kAborted: return "aborted a communicator";
    case Suspicion::Kind::kErred: return "printed an error";
    case Suspicion::Kind::kStoodStill: return "stood still";
    case Suspicion::Kind::kDiffers: return "waited elsewhere";
    case Suspicion::Kind::kLeft: return "exited early";
    case Suspicion::Kind::kClosed: return "closed its connections";
    case Suspicion::Kind::kStuck: return "stuck in a plugin";
    case Suspicion::Kind::kOverrode: return "changed variables";
    case Suspicion::Kind::kNone: break;
  }
  return nullptr;
}

std::string KnownPlacesText(const Facts& facts) {
  std::vector<RankDoing> places = PlacesOf(facts);
  for (RankDoing& doing : places) {
    const bool unknown = doing.phrase == stacks::kUnknownPlace;
    if (!unknown && doing.phrase != stacks::kRunning) continue;
    const auto rank = std::ranges::find(facts.ranks, doing.rank, &RankFacts::rank);
    std::string printed = rank == facts.ranks.end() ? "" : ErrorPlaceIn(rank->tail);
    if (unknown || !printed.empty()) doing.phrase = std::move(printed);
  }
  std::erase_if(places, [](const RankDoing& doing) { return doing.phrase.empty(); });
  return PlacesText(places);
}

std::string PlaceText(const RankFacts& rank) {
  if (rank.doing) return rank.doing->Said();
  return rank.inside.empty() ? "" : PlacesText(rank.inside);
}

std::vector<int> RanksThatLeft(const Facts& facts, const Suspicion& suspicion) {
  std::vector<int> ranks;
  if (suspicion.kind != Suspicion::Kind::kLeft) return ranks;
  for (const std::size_t index : suspicion.indices) AddRanks(facts.ranks[index], &ranks);
  return ranks;
}

std::string SuspicionText(const Facts& facts, const Suspicion& suspicion) {
  const RankFacts& suspect = facts.ranks[suspicion.indices.front()];
  switch (suspicion.kind) {
    case Suspicion::Kind::kAborted: {
      const PeerReport& abort = *AbortOf(suspect);
      const std::string place = PlaceText(suspect);
      return fmt::format("{} aborted '{}': {}{}", FoldRanks({suspect.blamed()}),
                         abort.args.at("communicator"), abort.args.at("reason"),
                         place.empty() ? "" : "; it was " + place);
    }
    case Suspicion::Kind::kErred: {
      const std::vector<std::string>& lines = suspect.before.empty() ? suspect.tail : suspect.before;
      const std::string place = OwnErrorPlaceIn(lines);
      return fmt::format("{} failed{}{}: {}", FoldRanks({suspect.blamed()}), place.empty() ? "" : " ", place,
                         ErrorIn(lines));
    }
    case Suspicion::Kind::kDiffers:
    case Suspicion::Kind::kStoodStill: return StandText(facts, suspicion.indices);
    case Suspicion::Kind::kStuck:
      return fmt::format("{} did not return in time from {}: a fault of {}", FoldRanks({suspect.blamed()}),
                         suspect.doing->plugin, PluginAtFault(suspect));
    case Suspicion::Kind::kOverrode: return OverridesText(facts);
    case Suspicion::Kind::kClosed: {
      std::vector<RankDoing> places;
      for (const std::size_t index : suspicion.indices) places.push_back(*facts.ranks[index].doing);
      return PlacesText(places, {}, {"lived, and was ", "lived, and were "}) +
             ", when the others had lost their connections";
    }
    case Suspicion::Kind::kLeft:
    case Suspicion::Kind::kNone: break;
  }
  const std::vector<int> ranks = RanksThatLeft(facts, suspicion);
  const bool lives = !suspect.ending || suspect.signal_sent != 0;
  return fmt::format("{} {} while others still needed {}", FoldRanks(ranks),
                     lives ? "called dtrun_finalize" : "exited with code 0",
                     ranks.size() == 1 ? "it" : "them");
}

std::string SuspicionHint(const Facts& facts, Suspicion::Kind kind) {
  switch (kind) {
    case Suspicion::Kind::kDiffers:
      return PlacesHint(PlacesOf(facts),
                        "check that place: every rank has to call the same collectives, in the same order");
    case Suspicion::Kind::kStoodStill:
      return "check that place: the other ranks waited for this one; the stacks have its other threads";
    case Suspicion::Kind::kLeft:
      return "every rank has to take as many steps as the others: look at its share of the data, and at its "
             "last output";
    case Suspicion::Kind::kClosed:
      return "look for what closed its connections before the others were done: destroy_process_group, or an "
             "error that the program caught";
    case Suspicion::Kind::kOverrode:
      return "let the program take MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE from its environment as "
             "they "
             "are";
    case Suspicion::Kind::kAborted:
    case Suspicion::Kind::kErred:
    case Suspicion::Kind::kStuck:
    case Suspicion::Kind::kNone: break;
  }
  return {};
}

std::string ApartText(const Facts& facts, std::size_t first) {
  const std::vector<int> circle = WaitedForEachOther(facts, first);
  std::string places = PlacesText(PlacesOf(facts));
  if (circle.empty()) return "the ranks waited in different calls: " + places;
  if (places.find(" at ") == places.npos) {  // the ranks' reports tell more
    places.clear();
    for (const int rank : circle) {
      const MissedCall call = MissedCallOf(*facts.Find(rank)).value();
      places += fmt::format("{}rank {} in {} rank {}", places.empty() ? "" : "; ", rank,
                            call.message.empty() ? "a collective without" : call.message, call.peer);
    }
  }
  return FoldRanks(circle) + " each waited for the other" + (circle.size() > 2 ? "s: " : ": ") + places;
}

std::string ApartHint(const Facts& facts, std::size_t first) {
  if (WaitedForEachOther(facts, first).empty()) return PlacesHint(PlacesOf(facts), kComparePlaces);
  if (MissedCallOf(facts.ranks[first])->message.empty())
    return "call the collectives of several groups in one order on all ranks";
  return "let one of them send while the other receives, or start both messages before either is waited for "
         "(isend and irecv, batch_isend_irecv; wait=False in dtrun's own calls)";
}

std::string OverridesText(const Facts& facts) {
  std::vector<std::pair<std::string, std::vector<int>>> changes;
  for (const RankFacts& rank : facts.ranks) {
    std::string text = OverridesText(rank.overrides);
    if (text.empty()) continue;
    if (changes.empty() || changes.back().first != text) changes.push_back({std::move(text), {}});
    changes.back().second.push_back(rank.rank);
  }
  std::string text;
  for (const auto& [change, ranks] : changes)
    text += fmt::format("{}{} set {}", text.empty() ? "" : "; ", FoldRanks(ranks), change);
  return text;
}

std::string AlikeText(const Facts& facts, std::size_t index, std::string_view said) {
  const std::vector<int> alike = FailedAlike(facts, index);
  if (alike.size() < 2) return {};
  const std::string who = alike.size() < facts.ranks.size() ? FoldRanks(alike)
                          : alike.size() == 2               ? "both ranks"
                                                            : fmt::format("all {} ranks", alike.size());
  const std::string error = ErrorIn(facts.ranks[index].tail);
  const bool told = error.empty() || said.find(error) != said.npos;
  return fmt::format("  {} failed the same way{}\n", who, told ? "" : ": " + error);
}

std::string PlacesText(const std::vector<RankDoing>& ranks, const std::vector<int>& but,
                       const std::pair<std::string_view, std::string_view>& verb) {
  std::vector<std::pair<std::string, std::vector<int>>> places;
  for (const RankDoing& doing : ranks) {
    if (std::ranges::find(but, doing.rank) != but.end()) continue;
    const auto known =
        std::ranges::find(places, doing.Said(), &std::pair<std::string, std::vector<int>>::first);
    if (known != places.end()) {
      known->second.push_back(doing.rank);
    } else {
      places.push_back({doing.Said(), {doing.rank}});
    }
  }
  std::string text;
  for (const auto& [place, at] : places) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : "; ", FoldRanks(at),
                        at.size() == 1 ? verb.first : verb.second, place);
  }
  return text;
}

}  // namespace dtrun::verdict

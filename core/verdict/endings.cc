#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/process/process.h"
#include "core/verdict/text.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

std::string ManyEndingText(const process::Ending& ending) {
  const std::string text = EndingText(ending);
  return text.starts_with("was ") ? "were" + text.substr(3) : text;
}

// Ranks that ended the same way, described in one clause.
struct Group {
  std::string one, many;  // the clause for one rank, for several
  std::vector<int> ranks;
  std::chrono::nanoseconds latest{0};
};

class Groups {
 public:
  Group& Of(const std::string& one, const std::string& many) {
    for (Group& group : groups_) {
      if (group.one == one) return group;
    }
    return groups_.emplace_back(Group{one, many, {}, {}});
  }

  // How its process ended, with the time since `at`.
  void AddEnding(const RankFacts& rank, std::chrono::nanoseconds at) {
    Group& group = Of(EndingText(*rank.ending), ManyEndingText(*rank.ending));
    AddRanks(rank, &group.ranks);
    group.latest = std::max(group.latest, rank.ended_at - at);
  }

  // "rank 0 exited with code 1, 0.01 s later; ranks 2-5 were stopped by dtrun"
  std::string Text() const {
    constexpr std::size_t kMost = 8;
    std::string text;
    for (const Group& group : groups_) {
      if (&group == groups_.data() + kMost)
        return text + fmt::format("; {} more ways: verdict.json", groups_.size() - kMost);
      const bool single = group.ranks.size() == 1;
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", FoldRanks(group.ranks),
                          single ? group.one : group.many);
      if (group.latest.count() == 0) continue;
      const std::string elapsed = FormatElapsed(group.latest);
      text += single ? fmt::format(", {} later", elapsed) : fmt::format(" within {}", elapsed);
    }
    return text;
  }

 private:
  std::vector<Group> groups_;
};

bool EndedWell(const RankFacts& rank) { return rank.ending && !rank.ending->failed(); }

// Describes the state of a rank without a known end, for one rank and for several.
std::pair<std::string, std::string> Unheard(const Facts& facts, const RankFacts& rank) {
  if (OnLostHost(facts, rank)) return {"was lost with its host", "were lost with their host"};
  if (facts.cut)
    return {"was still running when the record ended", "were still running when the record ended"};
  if (rank.pid == 0) return {"had not been started", "had not been started"};
  return {"had not ended 10 s after SIGKILL", "had not ended 10 s after SIGKILL"};
}

// Whether it failed by itself, in the same way as the first failure, although dtrun's signal was on its way.
bool FailedLike(const RankFacts& rank, const RankFacts* cause) {
  if (cause == nullptr || !cause->ending || !rank.ending || !rank.ending->failed()) return false;
  const process::Ending& its = *rank.ending;
  return its.signal == cause->ending->signal && its.code == cause->ending->code &&
         (its.signal == 0 || its.signal != rank.signal_sent);
}

// Neither dtrun nor, according to its reports, another rank caused its failure.
bool FailedAlone(const RankFacts& rank, const RankFacts* cause) {
  return (rank.FailedByItself() || FailedLike(rank, cause)) && !rank.BlamesPeer();
}

bool IsOneOf(const std::vector<int>& ranks, const RankFacts& rank) {
  return std::ranges::find(ranks, rank.rank) != ranks.end();
}

// The ranks that exited with code 0 and for which `counts` is true, with `clause` behind them; empty: none.
template <class Counts>
std::string Successful(const Facts& facts, const char* clause, Counts counts) {
  std::vector<int> ranks;
  for (const RankFacts& rank : facts.ranks) {
    if (EndedWell(rank) && counts(rank)) AddRanks(rank, &ranks);
  }
  return ranks.empty() ? "" : FoldRanks(ranks) + clause;
}

}  // namespace

std::string EndingText(const process::Ending& ending) {
  switch (ending.early_exit) {
    case process::EarlyExit::kNone: break;
    case process::EarlyExit::kBeforeInit:
      return "exited with code 0 without MPI_Init, which others have called";
    case process::EarlyExit::kBeforeFinalize:
      return "exited with code 0 after MPI_Init and without MPI_Finalize";
    case process::EarlyExit::kInMember: return "exited with code 0 in the middle of a call of its backend";
  }
  if (ending.stopped_by != 0) {
    return fmt::format("was stopped by signal {} ({}) and not resumed", ending.stopped_by,
                       process::SignalName(ending.stopped_by));
  }
  if (ending.signal == 0) return fmt::format("exited with code {}", ending.code);
  if (ending.out_of_memory) return "was killed by the kernel, which was out of memory (SIGKILL)";
  const std::string core = ending.core_dumped ? ", core dumped" : "";
  return fmt::format("was killed by signal {} ({}{})", ending.signal, process::SignalName(ending.signal),
                     core);
}

void AddRanks(const RankFacts& process, std::vector<int>* to) {
  for (int rank = process.rank; rank < process.rank + process.count; ++rank) to->push_back(rank);
}

bool OnLostHost(const Facts& facts, const RankFacts& rank) {
  return std::ranges::any_of(facts.losses, [&](const HostLoss& loss) { return loss.host == rank.host; });
}

std::string Beside(const Facts& facts, std::chrono::nanoseconds at, const std::vector<int>& told) {
  return Successful(facts, " exited with code 0", [&](const RankFacts& rank) {
    return rank.signal_sent == 0 && rank.ended_at >= at && !IsOneOf(told, rank);
  });
}

std::string Meanwhile(const Facts& facts, std::chrono::nanoseconds at) {
  return Successful(facts, " exited with code 0 while dtrun was ending the job",
                    [&](const RankFacts& rank) { return rank.signal_sent != 0 && rank.ended_at >= at; });
}

std::string Before(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                   const std::vector<int>& told) {
  return Successful(facts, " had exited with code 0", [&](const RankFacts& rank) {
    return &rank != cause && rank.ended_at < at && !IsOneOf(told, rank);
  });
}

std::string AlsoFailed(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                       const std::vector<int>& told) {
  Groups groups;
  for (const RankFacts& rank : facts.ranks) {
    if (&rank != cause && FailedAlone(rank, cause) && !IsOneOf(told, rank)) groups.AddEnding(rank, at);
  }
  return groups.Text();
}

std::string Consequences(const Facts& facts, const RankFacts* cause, std::chrono::nanoseconds at,
                         const std::vector<int>& told) {
  Groups groups;
  for (const RankFacts& rank : facts.ranks) {
    if (&rank == cause || IsOneOf(told, rank) || FailedAlone(rank, cause)) continue;
    if (EndedWell(rank)) continue;
    if (!rank.ending) {
      const auto [one, many] = Unheard(facts, rank);
      AddRanks(rank, &groups.Of(one, many).ranks);
    } else if (rank.ending->stopped_by == 0 && rank.signal_sent == SIGKILL &&
               rank.ending->signal == SIGKILL) {
      AddRanks(rank, &groups
                          .Of("did not stop in time and was killed by dtrun",
                              "did not stop in time and were killed by dtrun")
                          .ranks);
    } else if (rank.ending->stopped_by == 0 && rank.ending->signal != 0 &&
               rank.ending->signal == rank.signal_sent) {
      AddRanks(rank, &groups.Of("was stopped by dtrun", "were stopped by dtrun").ranks);
    } else {
      groups.AddEnding(rank, at);
    }
  }
  return groups.Text();
}

std::string Endings(const Facts& facts) {
  Groups groups;
  for (const RankFacts& rank : facts.ranks) {
    const auto [one, many] = rank.ending ? std::pair(EndingText(*rank.ending), ManyEndingText(*rank.ending))
                                         : Unheard(facts, rank);
    AddRanks(rank, &groups.Of(one, many).ranks);
  }
  return groups.Text();
}

}  // namespace dtrun::verdict

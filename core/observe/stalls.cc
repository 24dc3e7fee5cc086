#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/observe/observer.h"
#include "core/stacks/doing.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"
#include "core/verdict/waits.h"

namespace dtrun::observe {
namespace {

// What becomes of the job, and the next step.
bool IsDebugged(const verdict::RankDoing& rank) { return rank.phrase.starts_with(stacks::kStoppedBy); }

std::string WhatFollows(const StallPolicy& policy, const Stall& stall) {
  std::vector<int> debugged, working = stall.working;
  for (const verdict::RankDoing& rank : stall.ranks)
    if (IsDebugged(rank) && std::erase(working, rank.rank) != 0) debugged.push_back(rank.rank);
  const auto continues = [](const std::vector<int>& ranks, const char* one, const char* several) {
    return fmt::format("; the job continues because {} {}; --time-limit or Ctrl-C ends it",
                       verdict::FoldRanks(ranks), ranks.size() == 1 ? one : several);
  };
  if (!working.empty()) return continues(working, "computes", "compute");
  if (!debugged.empty()) return continues(debugged, "is in a debugger", "are in a debugger");
  return policy.fails ? "" : "; the job goes on; --set watch.on_stall=fail ends such a job";
}

class Stalls final : public StallObserver {
 public:
  Stalls(boost::asio::io_context& loop, StallPolicy policy, StallSite site)
      : policy_(policy),
        site_(std::move(site)),
        watch_(loop, policy, {site_.look, [this](const Stall& stall) { site_.found(Found(stall)); }}) {}

  Finding On(const View& /*view*/, std::size_t /*host*/, const protocol::Event& event) override {
    if (std::holds_alternative<protocol::Output>(event)) watch_.Progress();
    if (const auto* ended = std::get_if<protocol::Ended>(&event)) exited_.insert(ended->rank);
    return {};
  }
  std::chrono::nanoseconds Quiet() const override { return watch_.Quiet(); }
  void Resumed(const std::vector<int>& ranks, const protocol::Inspected& seen) override {
    watch_.Resumed(ranks, seen);
  }

 private:
  Finding Found(const Stall& stall) const {
    std::vector<verdict::RankDoing> ranks = stall.ranks;
    verdict::AddCalls(&ranks);
    fact::Places looked;
    for (verdict::RankDoing& rank : ranks) {
      looked.ranks.push_back({{rank.rank}, rank});
      if (!IsDebugged(rank) && std::ranges::find(stall.working, rank.rank) != stall.working.end())
        rank.phrase = "at work " + rank.phrase;
    }
    const std::string who = verdict::WhoWaitsText(ranks, {exited_.begin(), exited_.end()}, true);
    const std::string quiet = verdict::FormatElapsed(stall.standstill);
    const std::string file = site_.keep_stacks("no progress for " + quiet, ranks);
    Finding finding{{std::move(looked)}};
    finding.line =
        fmt::format("dtrun: no progress for {}{}: {}{}{}{}", quiet,
                    stall.deadlock ? ", and the ranks wait in different collectives"
                                   : " (no output, no call that is recorded)",
                    verdict::PlacesText(ranks), who.empty() || stall.deadlock ? "" : "; ",
                    stall.deadlock ? "; every rank has to call the same ones, in the same order" : who,
                    file.empty() ? "" : "; stacks: " + file) +
        WhatFollows(policy_, stall);
    if (!policy_.fails || !stall.working.empty() || stall.standstill < policy_.after) return finding;
    finding.facts.push_back(fact::Noted{fact::Noted::What::kStalled, quiet});
    finding.then = Finding::Then::kLookAndStop;
    return finding;
  }

  const StallPolicy policy_;
  const StallSite site_;
  StallWatch watch_;
  std::set<int> exited_;  // first ranks of processes
};

}  // namespace

std::unique_ptr<StallObserver> WatchStalls(boost::asio::io_context& loop, StallPolicy policy,
                                           StallSite site) {
  return std::make_unique<Stalls>(loop, policy, std::move(site));
}

}  // namespace dtrun::observe

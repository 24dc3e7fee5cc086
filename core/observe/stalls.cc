#include <fmt/format.h>

#include <algorithm>

#include "core/observe/observer.h"
#include "core/verdict/suspect.h"
#include "core/verdict/verdict.h"

namespace dtrun::observe {
namespace {

// What becomes of the job, and the next step.
std::string WhatFollows(const StallPolicy& policy, const std::vector<int>& working) {
  if (!working.empty()) {
    return fmt::format("; the job continues because {} {}; --time-limit or Ctrl-C ends it",
                       verdict::FoldRanks(working), working.size() == 1 ? "computes" : "compute");
  }
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
    return {};
  }
  std::chrono::nanoseconds Quiet() const override { return watch_.Quiet(); }

 private:
  Finding Found(const Stall& stall) const {
    std::vector<verdict::RankDoing> ranks = stall.ranks;
    fact::Places looked;
    for (verdict::RankDoing& rank : ranks) {
      looked.ranks.push_back({{rank.rank}, rank});
      if (std::ranges::find(stall.working, rank.rank) != stall.working.end())
        rank.phrase = "at work " + rank.phrase;
    }
    const std::string quiet = verdict::FormatElapsed(stall.standstill);
    const std::string file = site_.keep_stacks("no progress for " + quiet, ranks);
    Finding finding{{std::move(looked)}};
    finding.line =
        fmt::format("dtrun: no progress for {}{}: {}{}{}", quiet,
                    stall.deadlock ? ", and the ranks wait in different collectives"
                                   : " (no output, no collective that is recorded)",
                    verdict::PlacesText(ranks),
                    stall.deadlock ? "; every rank has to call the same ones, in the same order" : "",
                    file.empty() ? "" : "; stacks: " + file) +
        WhatFollows(policy_, stall.working);
    if (!policy_.fails || !stall.working.empty() || stall.standstill < policy_.after) return finding;
    finding.facts.push_back(fact::Noted{fact::Noted::What::kStalled, quiet});
    finding.then = Finding::Then::kLookAndStop;
    return finding;
  }

  const StallPolicy policy_;
  const StallSite site_;
  StallWatch watch_;
};

}  // namespace

std::unique_ptr<StallObserver> WatchStalls(boost::asio::io_context& loop, StallPolicy policy,
                                           StallSite site) {
  return std::make_unique<Stalls>(loop, policy, std::move(site));
}

}  // namespace dtrun::observe

#include "core/node/override_watch.h"

#include <algorithm>
#include <utility>

#include "core/process/process.h"
#include "core/verdict/overrides.h"

namespace dtrun::node {

OverrideWatch::OverrideWatch(boost::asio::io_context& loop, std::vector<Inspector::Target> ranks,
                             std::function<void(const protocol::RendezvousSeen&)> told, Times times)
    : timer_(loop), inspector_(loop), ranks_(std::move(ranks)), told_(std::move(told)), times_(times) {
  if (std::ranges::any_of(ranks_, [](const auto& rank) { return !rank.given.empty(); })) Wait(times_.first);
}

void OverrideWatch::Wait(std::chrono::milliseconds after) {
  timer_.expires_after(after);
  timer_.async_wait([this, after, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;
    Look();
    Wait(std::min(2 * after, times_.longest));
  });
}

void OverrideWatch::Look() {
  std::vector<Inspector::Target> living;
  for (const Inspector::Target& rank : ranks_) {
    const auto process = process::ReadProcess(rank.pid);
    if (process && process->state != 'Z') living.push_back(rank);
  }
  inspector_.Look(living, [this](const std::vector<verdict::RankDoing>& seen) { Tell(seen); });
}

void OverrideWatch::Tell(const std::vector<verdict::RankDoing>& seen) {
  protocol::RendezvousSeen looked;
  for (const verdict::RankDoing& doing : seen) {
    std::string text = verdict::OverridesText(doing.overrides);
    if (text.empty() || known_[doing.rank] == text) continue;
    known_[doing.rank] = std::move(text);
    looked.overrides.insert(looked.overrides.end(), doing.overrides.begin(), doing.overrides.end());
  }
  if (!looked.overrides.empty()) told_(looked);
}

}  // namespace dtrun::node

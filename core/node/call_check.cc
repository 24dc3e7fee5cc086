#include "core/node/call_check.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dtrun::node {
namespace {

// Checkpoints show that ranks of two hosts differ, but not in which call. Both hosts then request the last
// calls, and wait this many checks for them.
constexpr int kLooksForDetails = 3;

}  // namespace

Check::Check(asio::io_context& loop, const contract::RecorderMemory& recorder_memory, std::vector<int> ranks,
             Events events)
    : checker_(recorder_memory),
      reporter_(recorder_memory, ranks),
      ranks_(std::move(ranks)),
      timer_(loop),
      events_(std::move(events)) {
  Wait();
}

void Check::Wait() {
  timer_.After(std::chrono::milliseconds(100), [this] {
    if (!differed_) Look();
    auto windows = reporter_.Report();
    if (!windows.empty()) events_.reported(std::move(windows));
    Wait();
  });
}

void Check::Look() {
  std::optional<contract::Difference> difference = checker_.Check();
  for (contract::Damage& damage : checker_.TakeDamage()) events_.damaged(std::move(damage));
  if (!difference) return;
  difference->between_hosts = !IsHere(difference->first) || !IsHere(difference->second);
  if (difference->between_hosts && !difference->exact && looks_++ < kLooksForDetails) {
    reporter_.Tell(difference->communicator);
    return;
  }
  differed_ = true;
  events_.differed(*std::move(difference));
}

bool Check::IsHere(int rank) const { return std::ranges::find(ranks_, rank) != ranks_.end(); }

std::string Check::History() const {
  std::string text;
  for (const int rank : ranks_) text += checker_.History(rank);
  return text;
}

}  // namespace dtrun::node

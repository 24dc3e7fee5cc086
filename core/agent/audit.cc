#include "core/agent/audit.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace dtrun::agent {
namespace {

// Checkpoints tell that ranks of two hosts differ, but not in which call: both hosts ask for the last
// calls then, and wait this many looks for them.
constexpr int kLooksForDetails = 3;

}  // namespace

Audit::Audit(boost::asio::io_context& loop, const comm::Book& book, std::vector<int> ranks, Events events)
    : auditor_(book),
      reporter_(book, ranks),
      ranks_(std::move(ranks)),
      timer_(loop),
      events_(std::move(events)) {
  Wait();
}

void Audit::Wait() {
  timer_.expires_after(std::chrono::milliseconds(100));
  timer_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;  // the run is over
    if (!differed_) Look();
    auto excerpts = reporter_.Report();
    if (!excerpts.empty()) events_.reported(std::move(excerpts));
    Wait();
  });
}

void Audit::Look() {
  std::optional<comm::Difference> difference = auditor_.Audit();
  for (comm::Damage& damage : auditor_.TakeDamage()) events_.damaged(std::move(damage));
  if (!difference) return;
  difference->between_hosts = !IsHere(difference->first) || !IsHere(difference->second);
  if (difference->between_hosts && !difference->exact && looks_++ < kLooksForDetails) {
    reporter_.Tell(difference->communicator);
    return;
  }
  differed_ = true;
  events_.differed(*std::move(difference));
}

bool Audit::IsHere(int rank) const { return std::ranges::find(ranks_, rank) != ranks_.end(); }

std::string Audit::History() const {
  std::string text;
  for (const int rank : ranks_) text += auditor_.History(rank);
  return text;
}

}  // namespace dtrun::agent

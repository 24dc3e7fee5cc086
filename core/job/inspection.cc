#include "core/job/inspection.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/node/inspector.h"

namespace dtrun::job {
namespace {

// Extra time for the round trip to the hosts.
constexpr std::chrono::milliseconds kOnTheWay{500};

}  // namespace

void Inspection::Begin(const Hosts& hosts, Done done, const std::vector<int>& closely) {
  Reset();
  done_ = std::move(done);
  Start(hosts, {.closely = closely});
}

void Inspection::Wish(std::function<Hosts()> hosts, Done done, protocol::Inspect wanted) {
  wishes_.push_back({std::move(hosts), std::move(done), std::move(wanted)});
  if (!done_ && granted_.empty()) Grant();
}

void Inspection::Grant() {
  if (wishes_.empty()) return;
  granted_ = std::exchange(wishes_, {});
  protocol::Inspect all{.recorders = false};
  for (const Wished& wish : granted_) {
    all.closely.insert(all.closely.end(), wish.wanted.closely.begin(), wish.wanted.closely.end());
    all.recorders = all.recorders || wish.wanted.recorders;
    all.looks = all.looks || wish.wanted.looks;
  }
  std::ranges::sort(all.closely);
  all.closely.erase(std::unique(all.closely.begin(), all.closely.end()), all.closely.end());
  Start(granted_.front().hosts(), std::move(all));
}

void Inspection::Start(const Hosts& hosts, protocol::Inspect wanted) {
  for (const auto& [number, host] : hosts) answered_[number] = false;
  const auto patience = hosts.empty() ? std::chrono::milliseconds(0) : node::kLookPatience + kOnTheWay;
  timer_.After(patience, [this] { Finish(); });
  wanted.number = number_;
  for (const auto& [number, host] : hosts) host->Do(wanted);
}

void Inspection::Answer(std::size_t host, const protocol::Inspected& inspected) {
  if (inspected.number != number_) return;
  const auto found = answered_.find(host);
  if (found == answered_.end() || std::exchange(found->second, true)) return;
  all_.ranks.insert(all_.ranks.end(), inspected.ranks.begin(), inspected.ranks.end());
  all_.looks.insert(all_.looks.end(), inspected.looks.begin(), inspected.looks.end());
  all_.calls = all_.calls * 31 + inspected.calls * (host + 1);
  if (std::ranges::all_of(answered_, [](const auto& one) { return one.second; })) Finish();
}

void Inspection::Reset() {
  ++number_;
  timer_.Cancel();
  answered_.clear();
  all_ = {};
  done_ = {};
}

void Inspection::Cancel() {
  Reset();
  std::vector<Wished> unanswered = std::exchange(granted_, {});
  std::ranges::move(std::exchange(wishes_, {}), std::back_inserter(unanswered));
  for (const Wished& wish : unanswered) wish.done({});
}

void Inspection::Finish() {
  const Done done = std::exchange(done_, {});
  protocol::Inspected all = std::exchange(all_, {});
  const std::vector<Wished> granted = std::exchange(granted_, {});
  Reset();
  std::ranges::sort(all.ranks, {}, &verdict::RankDoing::rank);
  if (done) done(all);
  for (const Wished& wish : granted) wish.done(all);
  if (!done_ && granted_.empty()) Grant();
}

}  // namespace dtrun::job

#include "core/job/inspection.h"

#include <algorithm>
#include <utility>

#include "core/node/inspector.h"

namespace dtrun::job {
namespace {

// Extra time for the round trip to the hosts.
constexpr std::chrono::milliseconds kOnTheWay{500};

}  // namespace

void Inspection::Begin(const std::map<std::size_t, protocol::Host*>& hosts, Done done,
                       const std::vector<int>& closely) {
  Cancel();
  done_ = std::move(done);
  for (const auto& [number, host] : hosts) answered_[number] = false;
  timer_.expires_after(node::kLookPatience + kOnTheWay);
  timer_.async_wait([this, number = number_](const boost::system::error_code& error) {
    if (!error && number == number_) Finish();
  });
  for (const auto& [number, host] : hosts) host->Do(protocol::Inspect{number_, closely});
}

void Inspection::Answer(std::size_t host, const protocol::Inspected& inspected) {
  if (inspected.number != number_) return;
  const auto found = answered_.find(host);
  if (found == answered_.end() || std::exchange(found->second, true)) return;
  all_.ranks.insert(all_.ranks.end(), inspected.ranks.begin(), inspected.ranks.end());
  all_.calls = all_.calls * 31 + inspected.calls * (host + 1);
  if (std::ranges::all_of(answered_, [](const auto& one) { return one.second; })) Finish();
}

void Inspection::Cancel() {
  ++number_;
  timer_.cancel();
  answered_.clear();
  all_ = {};
  done_ = {};
}

void Inspection::Finish() {
  const Done done = std::exchange(done_, {});
  protocol::Inspected all = std::exchange(all_, {});
  Cancel();
  std::ranges::sort(all.ranks, {}, &verdict::RankDoing::rank);
  if (done) done(all);
}

}  // namespace dtrun::job

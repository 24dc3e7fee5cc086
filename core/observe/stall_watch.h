// Detects a job without progress. For a whole time limit no rank prints, calls a recorded collective, reads,
// writes or changes its code location, and at least one rank does not compute either.
//
// Costs nothing while ranks print. When they are quiet, it inspects them several times within each limit, and
// any change between looks is progress. Ranks that wait for each other in different
// collectives are reported long before the limit. Owned by an observer; loop thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/asio.h"
#include "core/protocol/host.h"

namespace dtrun::observe {

// watch.stall and watch.on_stall.
struct StallPolicy {
  std::chrono::nanoseconds after{};  // 0: off
  bool fails = false;                // a stall in which no rank works ends the ranks
  // Limit for ranks that wait for each other in different collectives, even if `after` is longer.
  std::chrono::nanoseconds deadlock_after = std::chrono::seconds(20);
};

// job.isolated_ranks: "warn", "fail", "allow".
enum class IsolationPolicy : std::uint8_t { kWarn, kFail, kAllow };
// REQUIRES: one of these words.
IsolationPolicy IsolationPolicyNamed(std::string_view word);

struct Stall {
  std::chrono::nanoseconds standstill{};  // measured duration
  std::vector<verdict::RankDoing> ranks;
  std::vector<int> working;  // ranks that still compute
  bool deadlock = false;     // they wait for each other in different collectives
};

// Determines since when each rank is stuck, from several looks. A rank moves when it reads, writes or changes
// its code location; it works when it uses CPU time, but not if its main thread sleeps and the kernel uses
// most of that time: gloo's thread polls a connection that the peer has closed. A rank that does neither
// between looks is stuck.
class Standstill {
 public:
  using Clock = std::chrono::steady_clock;

  // Adds a look made at `at`, later than all before.
  void Add(const protocol::Inspected& seen, Clock::time_point at);
  // A tool has stopped these ranks until `at`, by `seen`: those that worked are measured from then on.
  void Resume(const std::vector<int>& ranks, const protocol::Inspected& seen, Clock::time_point at);
  // Discards all earlier looks.
  void Forget() { *this = Standstill(); }

  // How long nothing has moved; 0 before the first look.
  std::chrono::nanoseconds Lasts() const { return looked_ - moved_; }
  // How long this rank has neither moved nor worked.
  std::chrono::nanoseconds Lasts(int rank) const { return looked_ - ranks_.at(rank).since; }
  // Whether a look found it waiting for other ranks since it became stuck. The last one may have met a moment
  // of work of its library, such as gloo's loop.
  bool Waited(int rank) const { return ranks_.at(rank).waited; }
  // Whether it worked between the last two looks.
  bool Works(int rank) const { return ranks_.at(rank).works; }
  // How long its main thread has not gone to sleep: one that waits busily for ranks does not.
  std::chrono::nanoseconds Awake(int rank) const { return looked_ - ranks_.at(rank).slept; }

 private:
  struct Rank {
    verdict::RankDoing seen;      // at the last look, without stacks
    Clock::time_point since{};    // when it became stuck
    std::int64_t used_then_ms{};  // its CPU time at `since`
    std::int64_t kernel_then_ms{};
    bool works = false;
    bool waited = false;
    Clock::time_point slept{};  // a look found that it had been asleep
  };

  std::map<int, Rank> ranks_;
  std::optional<std::uint64_t> calls_;
  Clock::time_point moved_{}, looked_{};
};

class StallWatch {
 public:
  struct Events {
    // `closely`: ranks of which native stacks are taken as well.
    std::function<void(std::function<void(const protocol::Inspected&)> done, std::vector<int> closely)> look;
    // Called once until there is progress again, and once more when the ranks that worked then are stuck too.
    // Before `after`, only for a deadlock.
    std::function<void(const Stall& stall)> stalled;
  };

  StallWatch(boost::asio::io_context& loop, StallPolicy policy, Events events);
  ~StallWatch() { *ended_ = true; }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // Call when a rank has printed something.
  void Progress();
  // See StallObserver.
  void Resumed(const std::vector<int>& ranks, const protocol::Inspected& seen) {
    standstill_.Resume(ranks, seen, Clock::now());
  }
  // Time since the last output.
  std::chrono::nanoseconds Quiet() const { return Clock::now() - printed_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Told : std::uint8_t { kNothing, kDeadlock, kSomeWork, kAll };

  void WaitUntil(Clock::time_point at);
  void Look();
  void Judge(const protocol::Inspected& now);
  bool IsDeadlock(const std::vector<verdict::RankDoing>& ranks) const;
  // MPI libraries wait busily: of native ranks that seem to work and would keep the job from its end, their
  // stacks say whether they wait. `unclear`: these ranks.
  void LookCloser(Stall stall, const std::vector<int>& unclear);
  void Tell(const Stall& stall);

  boost::asio::steady_timer timer_;
  const StallPolicy policy_;
  const std::chrono::nanoseconds every_;  // interval between looks
  const Events events_;
  Clock::time_point printed_ = Clock::now();
  Standstill standstill_;  // since the last output
  Told told_ = Told::kNothing;
  std::optional<Clock::time_point> looked_closer_;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for late timer handlers and answers
};

}  // namespace dtrun::observe

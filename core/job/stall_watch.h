// Detects a job without progress. For a whole time limit no rank prints, calls a recorded collective, reads,
// writes or changes its code location, and at least one rank does not compute either.
//
// Costs nothing while ranks print. When they are quiet, it inspects them several times within each limit, and
// any change between looks is progress (standstill.h). Ranks that wait for each other in different
// collectives are reported long before the limit. Owned by the controller; loop thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/asio.h"
#include "core/job/standstill.h"
#include "core/protocol/host.h"

namespace dtrun::job {

// watch.stall and watch.on_stall.
struct StallPolicy {
  std::chrono::nanoseconds after{};  // 0: off
  bool fails = false;                // a stall in which no rank works ends the job
  // Limit for ranks that wait for each other in different collectives, even if `after` is longer.
  std::chrono::nanoseconds deadlock_after = std::chrono::seconds(20);
};

struct Stall {
  std::chrono::nanoseconds standstill{};  // measured duration
  std::vector<verdict::RankDoing> ranks;
  std::vector<int> working;  // ranks that still compute
  bool deadlock = false;     // they wait for each other in different collectives
};

class StallWatch {
 public:
  struct Events {
    std::function<void(std::function<void(const protocol::Inspected&)> done)> look;
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
  // Time since the last output.
  std::chrono::nanoseconds Quiet() const { return Clock::now() - printed_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Told : std::uint8_t { kNothing, kDeadlock, kSomeWork, kAll };

  void WaitUntil(Clock::time_point at);
  void Look();
  void Judge(const protocol::Inspected& now);
  bool IsDeadlock(const protocol::Inspected& now) const;

  boost::asio::steady_timer timer_;
  const StallPolicy policy_;
  const std::chrono::nanoseconds every_;  // interval between looks
  const Events events_;
  Clock::time_point printed_ = Clock::now();
  Standstill standstill_;  // since the last output
  Told told_ = Told::kNothing;
  const std::shared_ptr<bool> ended_ = std::make_shared<bool>(false);  // for late timer handlers and answers
};

}  // namespace dtrun::job

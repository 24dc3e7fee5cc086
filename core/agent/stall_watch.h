// Notices a job without progress: nobody prints, nobody calls a collective that is recorded, and at least one
// rank neither computes nor reads or writes.
//
// Costs nothing while ranks print. When they have been quiet for half of the limit it looks at them, and
// again at the limit: what they used in between tells who waits. Owned by the conductor; loop thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/agent/asio.h"
#include "core/agent/host.h"

namespace dtrun::agent {

// watch.stall and watch.on_stall.
struct StallPolicy {
  std::chrono::nanoseconds after{};  // 0: off
  bool fails = false;                // a stall in which nobody works ends the job
};

struct Stall {
  std::chrono::nanoseconds quiet{};
  std::vector<RankDoing> ranks;
  std::vector<int> working;  // of these, by rank
};

class StallWatch {
 public:
  struct Events {
    std::function<void(std::function<void(const Inspected&)> done)> look;
    std::function<void(const Stall& stall)> stalled;  // once until there is progress again
  };

  StallWatch(boost::asio::io_context& loop, StallPolicy policy, Events events);
  ~StallWatch() { *ended_ = true; }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // A rank has printed something.
  void Progress();
  // How long none has.
  std::chrono::nanoseconds Quiet() const { return Clock::now() - last_; }

 private:
  using Clock = std::chrono::steady_clock;

  void WaitUntil(Clock::time_point at);
  void Look();
  void Compare(const Inspected& now);

  boost::asio::steady_timer timer_;
  const StallPolicy policy_;
  const Events events_;
  Clock::time_point last_ = Clock::now();
  std::optional<Inspected> before_;  // the look since which nobody has printed
  Clock::time_point looked_{};       // when that was
  bool told_ = false;
  const std::shared_ptr<bool> ended_ =
      std::make_shared<bool>(false);  // for timers and answers that come late
};

// The ranks that have done nothing but wait between two looks that far apart.
std::vector<int> IdleBetween(const Inspected& before, const Inspected& after, std::chrono::nanoseconds apart);

}  // namespace dtrun::agent

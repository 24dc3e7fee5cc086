// Notices a job without progress: through the whole of a limit nobody prints, nobody calls a collective that
// is recorded, nobody reads, writes or gets to another place, and at least one rank does not compute either.
//
// Costs nothing while ranks print. When they are quiet it looks at them several times in each limit, and what
// changes from one look to the next is progress (standstill.h). Ranks that wait for each other in different
// collectives are told of long before the limit. Owned by the controller; loop thread.
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
  bool fails = false;                // a stall in which nobody works ends the job
  // Ranks that wait for each other in different collectives are told of so soon, however long `after` is.
  std::chrono::nanoseconds deadlock_after = std::chrono::seconds(20);
};

struct Stall {
  std::chrono::nanoseconds standstill{};  // as it was measured
  std::vector<verdict::RankDoing> ranks;
  std::vector<int> working;  // of these, by rank
  bool deadlock = false;     // they wait for each other in different collectives
};

class StallWatch {
 public:
  struct Events {
    std::function<void(std::function<void(const protocol::Inspected&)> done)> look;
    // Once until there is progress again, and once more when those that worked then stand still too. Before
    // the limit of a deadlock only.
    std::function<void(const Stall& stall)> stalled;
  };

  StallWatch(boost::asio::io_context& loop, StallPolicy policy, Events events);
  ~StallWatch() { *ended_ = true; }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  // A rank has printed something.
  void Progress();
  // How long none has.
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
  const std::chrono::nanoseconds every_;  // looks
  const Events events_;
  Clock::time_point printed_ = Clock::now();
  Standstill standstill_;  // since then
  Told told_ = Told::kNothing;
  const std::shared_ptr<bool> ended_ =
      std::make_shared<bool>(false);  // for timers and answers that come late
};

}  // namespace dtrun::job

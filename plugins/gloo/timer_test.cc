#include "timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace dtrun::gloo_plugin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;

const dtrun_host* BareHost() {
  static const dtrun_host host = [] {
    dtrun_host bare{};
    bare.struct_size = sizeof bare;
    bare.get_service = [](const dtrun_host*, const char*) -> const void* { return nullptr; };
    return bare;
  }();
  return &host;
}

TEST(Timer, CallsInTheOrderOfTime) {
  Timer timer{sdk::Host(BareHost())};
  const auto now = sdk::Deadline::Clock::now();
  std::vector<int> order;
  std::promise<void> last;
  timer.Add(now + milliseconds(30), [&] {
    order.push_back(3);
    last.set_value();
  });
  timer.Add(now + milliseconds(10), [&] { order.push_back(1); });
  timer.Add(now + milliseconds(20), [&] { order.push_back(2); });
  last.get_future().wait();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(Timer, CallsNothingThatWasCancelled) {
  Timer timer{sdk::Host(BareHost())};
  const auto now = sdk::Deadline::Clock::now();
  bool cancelled_ran = false;
  std::promise<void> later;
  const Timer::Id id = timer.Add(now + milliseconds(20), [&] { cancelled_ran = true; });
  timer.Add(now + milliseconds(40), [&] { later.set_value(); });
  timer.Cancel(id);
  later.get_future().wait();
  EXPECT_FALSE(cancelled_ran);
}

TEST(Timer, WakesForAnEntryThatComesBeforeTheOneItSleepsFor) {
  Timer timer{sdk::Host(BareHost())};
  std::promise<void> soon;
  timer.Add(sdk::Deadline::Clock::now() + hours(1), [] {});
  timer.Add(sdk::Deadline::Clock::now(), [&] { soon.set_value(); });
  soon.get_future().wait();
}

TEST(TimerEntry, IsNoEntryWithoutADeadline) {
  Timer timer{sdk::Host(BareHost())};
  bool ran = false;
  {
    const TimerEntry entry(timer, sdk::Deadline(), [&] { ran = true; });
  }
  std::promise<void> done;
  timer.Add(sdk::Deadline::Clock::now(), [&] { done.set_value(); });
  done.get_future().wait();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace dtrun::gloo_plugin

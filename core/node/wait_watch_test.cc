#include "core/node/wait_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/node/rivals.h"

namespace dtrun::node {
namespace {

using std::chrono::milliseconds;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A child that sleeps, or uses a processor all the time.
class Child {
 public:
  explicit Child(bool works) : pid_(::fork()) {
    if (pid_ != 0) return;
    while (works) asm volatile("");
    for (;;) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

std::vector<protocol::RankLooks> Watch(
    const Child& child, std::size_t looks, const WaitWatch::Calls& calls = [](auto&) {}) {
  boost::asio::io_context loop;
  const Inspector::Target target{3, child.pid()};
  WaitWatch watch(
      loop, [&] { return std::vector{target}; }, calls, milliseconds(10));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < until) {
    loop.run_one_for(milliseconds(100));
    const auto seen = watch.Seen();
    if (seen.empty()) continue;
    const auto missed =
        std::ranges::count(seen[0].letters, protocol::RankLooks::kMissed);  // on a busy machine
    if (seen[0].letters.size() - static_cast<std::size_t>(missed) >= looks || seen[0].every > 1) break;
  }
  return watch.Seen();
}

TEST(WaitWatch, TellsARankAsleepFromOneAtWork) {
  const Child sleeps(false), works(true);
  const auto asleep = Watch(sleeps, 5), at_work = Watch(works, 5);
  ASSERT_THAT(asleep, SizeIs(1));
  EXPECT_EQ(asleep[0].rank, 3);
  EXPECT_EQ(asleep[0].letters.back(), protocol::RankLooks::kElsewhere);
  EXPECT_EQ(asleep[0].place, "in pause");
  EXPECT_LT(asleep[0].active_percent, 50);
  ASSERT_THAT(at_work, SizeIs(1));
  EXPECT_GT(at_work[0].active_percent, 50);  // counts the time for which it lacks a processor
}

// A C program: its places are not known from outside.
TEST(WaitWatch, TakesTheWaitsOfAProgramFromItsRecordedCalls) {
  const Child sleeps(false);
  std::uint64_t number = 5;
  const auto in_call = [&](std::vector<verdict::RankDoing>& seen) {
    seen[0].stand = number % 2 == 0 ? stacks::Stand::kUnknown : stacks::Stand::kElsewhere;
    contract::RecordedCall& call = seen[0].call.emplace();
    call.under_way = number % 5 != 0;
    call.number = std::max<std::uint64_t>(number, 9);
    ++number;
  };
  const auto seen = Watch(sleeps, 7, in_call);
  ASSERT_THAT(seen, SizeIs(1));
  // Asleep outside a call, four looks at call 9, outside, and at call 11.
  using protocol::RankLooks;
  std::string letters = seen[0].letters;
  std::erase(letters, RankLooks::kMissed);
  const std::string wanted = {RankLooks::kElsewhere,  RankLooks::kWaits,      RankLooks::kStillWaits,
                              RankLooks::kStillWaits, RankLooks::kStillWaits, RankLooks::kOther,
                              RankLooks::kWaits};
  EXPECT_EQ(letters.substr(0, wanted.size()), wanted);
}

TEST(WaitWatch, KeepsEverySecondLookOfALongJob) {
  const Child sleeps(false);
  const auto seen = Watch(sleeps, 1000);
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].every, 2u);
  EXPECT_LE(seen[0].letters.size(), WaitWatch::kMostLooks);
}

TEST(Rivals, AreProcessesThatDoNotDescendFromThisOne) {
  const Child ours(true);
  Rivals rivals;
  rivals.Scan();
  std::this_thread::sleep_for(milliseconds(1100));  // a second scan within a second does nothing
  rivals.Scan();
  const auto rival = rivals.Of(ours.pid());
  EXPECT_TRUE(!rival || rival->pid != ours.pid());
  EXPECT_FALSE(rivals.Of(-1).has_value());
}

}  // namespace
}  // namespace dtrun::node

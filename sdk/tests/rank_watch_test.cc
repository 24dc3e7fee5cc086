#include "sdk/conformance/rank_watch.h"

#include <gtest/gtest.h>

#include <thread>

#include "sdk/conformance/subject.h"

namespace dtrun::conformance {
namespace {

TEST(RankWatch, ReturnsWhenAllRanksHave) {
  RankWatch watch("Suite.Case", 1);
  std::thread rank([&] {
    watch.Enter(0);
    RankWatch::Doing("waits", nullptr);
    watch.Leave(0);
  });
  watch.Await(std::chrono::seconds(60));
  rank.join();
}

TEST(RankWatch, EndsAProcessWhoseRankHangsAndSaysWhatItDid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        RankWatch watch("Suite.Case", 2);
        std::thread([&] {
          watch.Enter(0);
          const dtrun_op op = RecvOp(nullptr, 1, DTRUN_FLOAT32, 1, 3);
          RankWatch::Doing("waits for a request", &op);
          std::this_thread::sleep_for(std::chrono::hours(1));  // hangs
        }).detach();
        std::thread([&] {
          watch.Enter(1);
          watch.Leave(1);
        }).detach();
        watch.Await(std::chrono::seconds(2));
      },
      testing::ExitedWithCode(1),
      "Suite.Case: its ranks did not end within 2 s.*\n.*rank 0: waits for a request; last operation: recv "
      "from rank 1 "
      "with tag 3\n.*rank 1: has returned");
}

}  // namespace
}  // namespace dtrun::conformance

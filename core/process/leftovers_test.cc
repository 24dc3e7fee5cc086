#include "core/process/leftovers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "core/process/spawn.h"
#include "core/process/testing.h"

namespace dtrun::process {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LeftoversTest : public ::testing::Test {
 protected:
  void SetUp() override { BecomeSubreaper(); }
  void TearDown() override { KillDescendants(std::chrono::seconds(30)); }

  Child Start(const std::string& script, const std::string& rank) {
    SpawnRequest request;
    request.argv = {"/bin/sh", "-c", script};
    request.env = {"PATH=/usr/bin:/bin"};
    if (!rank.empty()) request.env.push_back("DTRUN_RANK=" + rank);
    request.cwd = scratch_.path().string();
    return std::move(Spawn(request)).value();
  }

  Leftovers::Say Say() {
    return [this](const std::string& line) { said_.push_back(line); };
  }

  testing::ScratchDir scratch_;
  std::vector<std::string> said_;
  boost::asio::io_context loop_;
  int done_ = 0;
};

TEST_F(LeftoversTest, FinishAtOnceWhenThereAreNone) {
  Leftovers leftovers(loop_, {}, Say());
  leftovers.Stop(std::chrono::hours(1), std::chrono::hours(1), false, [this] { ++done_; });
  EXPECT_EQ(done_, 0);  // never from inside Stop
  loop_.run();
  EXPECT_EQ(done_, 1);
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LeftoversTest, HaveAMomentToEndByThemselvesOfWhichNothingIsSaid) {
  const Child helper =
      Start("trap ': > told; exit' TERM; : > up; until [ -e go ]; do sleep 0.01; done; : > cleaned", "0");
  ASSERT_TRUE(testing::Eventually([this] { return std::filesystem::exists(scratch_ / "up"); }));
  Leftovers leftovers(loop_, {}, Say());
  leftovers.Stop(std::chrono::hours(1), std::chrono::hours(1), false, [this] { ++done_; });
  std::ofstream(scratch_ / "go").close();
  loop_.run();
  EXPECT_EQ(done_, 1);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "cleaned"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "told"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LeftoversTest, AreNamedByGroupThenByEnvironmentThenNotAtAll) {
  const std::string sleep = "; kill -STOP $$";
  const Child by_group = Start(": > up.1" + sleep, "");
  const Child by_environment = Start(": > up.2" + sleep, "7");
  const Child unknown = Start(": > up.3" + sleep, "");
  ASSERT_TRUE(testing::Eventually([this] {
    return std::filesystem::exists(scratch_ / "up.1") && std::filesystem::exists(scratch_ / "up.2") &&
           std::filesystem::exists(scratch_ / "up.3");
  }));
  Leftovers leftovers(loop_, {{by_group.pid, 4}}, Say());
  leftovers.Stop(std::chrono::milliseconds(1), std::chrono::hours(1), false, [this] { ++done_; });
  loop_.run();  // ends long before the hour: all handled SIGTERM
  EXPECT_THAT(said_, ElementsAre(HasSubstr("rank 4 left 1 process behind (" + std::to_string(by_group.pid)),
                                 HasSubstr("rank 7 left 1 process behind"),
                                 HasSubstr("the job left 1 process behind")));
  EXPECT_EQ(done_, 1);
}

// Like torch's manager, it exits by itself only after its last client.
constexpr char kManagerScript[] =
    "printf torch_shm_manag > /proc/self/comm; trap ': > told; exit' TERM; : > up; "
    "until [ -e go ]; do sleep 0.01; done; : > cleaned";

TEST_F(LeftoversTest, TellTorchsManagerToEndAtOnceWhenItHasNothingToRemove) {
  const Child manager = Start(kManagerScript, "0");
  ASSERT_TRUE(testing::Eventually([this] { return std::filesystem::exists(scratch_ / "up"); }));
  Leftovers leftovers(loop_, {}, Say());
  leftovers.Stop(std::chrono::hours(1), std::chrono::hours(1), false, [this] { ++done_; });
  loop_.run();
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "told"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LeftoversTest, WaitForTorchsManagerWhileSegmentsWaitForIt) {
  const Child manager = Start(kManagerScript, "0");
  ASSERT_TRUE(testing::Eventually([this] { return std::filesystem::exists(scratch_ / "up"); }));
  Leftovers leftovers(loop_, {}, Say());
  leftovers.Stop(std::chrono::milliseconds(0), std::chrono::hours(1), true, [this] { ++done_; });
  boost::asio::steady_timer later(loop_, std::chrono::milliseconds(50));  // than the moment of others
  later.async_wait([this](const boost::system::error_code&) { std::ofstream(scratch_ / "go").close(); });
  loop_.run();
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "cleaned"));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "told"));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(LeftoversTest, GetNoMoreThanTheGrace) {
  const Child child = Start("trap '' TERM; : > up; while :; do sleep 1000; done", "0");
  ASSERT_TRUE(testing::Eventually([this] { return std::filesystem::exists(scratch_ / "up"); }));
  Leftovers leftovers(loop_, {}, Say());
  leftovers.Stop(std::chrono::milliseconds(1), std::chrono::milliseconds(10), false, [this] { ++done_; });
  loop_.run();
  EXPECT_EQ(done_, 1);
}

TEST_F(LeftoversTest, CanBeHurriedMoreThanOnce) {
  const Child child = Start("trap '' TERM; : > up; while :; do sleep 1000; done", "0");
  ASSERT_TRUE(testing::Eventually([this] { return std::filesystem::exists(scratch_ / "up"); }));
  Leftovers leftovers(loop_, {}, Say());
  leftovers.Stop(std::chrono::hours(1), std::chrono::hours(1), false, [this] { ++done_; });
  leftovers.Hurry();
  leftovers.Hurry();
  loop_.run();
  EXPECT_EQ(done_, 1);
}

}  // namespace
}  // namespace dtrun::process

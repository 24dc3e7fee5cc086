#include "core/node/inspector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "core/job/inspection.h"
#include "core/process/process.h"
#include "core/process/testing.h"

namespace dtrun::node {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class InspectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    child_ = ::fork();
    if (child_ == 0) {
      for (;;) ::pause();
    }
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  boost::asio::io_context loop_;
  pid_t child_ = 0;
};

TEST_F(InspectorTest, LooksAtEveryRank) {
  Inspector inspector(loop_);
  std::vector<verdict::RankDoing> found;
  inspector.Look({{7, child_}, {3, child_}},
                 [&](std::vector<verdict::RankDoing> ranks) { found = std::move(ranks); });
  loop_.run();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_EQ(found[1].rank, 7);
  EXPECT_FALSE(found[0].phrase.empty());
}

TEST_F(InspectorTest, FindsTheRanksThatAProgramHasStarted) {
  const pid_t program = ::fork();
  if (program == 0) {
    ::unsetenv("DTRUN_RANK");
    ::execl("/bin/sh", "sh", "-c",
            "DTRUN_RANK=5 sleep 1000 & DTRUN_RANK=4 sleep 1000 & DTRUN_RANK=9 sleep 1000 & wait", nullptr);
    ::_exit(1);
  }
  Inspector inspector(loop_);
  std::vector<verdict::RankDoing> found;
  EXPECT_TRUE(process::testing::Eventually([&] {
    inspector.Look({{4, program, 2}},
                   [&](std::vector<verdict::RankDoing> ranks) { found = std::move(ranks); });
    loop_.restart();
    loop_.run();
    return found.size() == 2 && found[0].stand == stacks::Stand::kElsewhere &&
           found[1].stand == stacks::Stand::kElsewhere;
  }));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].rank, 4);
  EXPECT_EQ(found[1].rank, 5);
  for (const process::Process& process : process::Descendants(program)) process::SendSignal(process, SIGKILL);
  ::waitpid(program, nullptr, 0);
}

TEST_F(InspectorTest, SaysWhichRankHoldsTheLockThatAnotherWaitsFor) {
  const process::testing::ScratchDir scratch;
  const std::string file = scratch.path() / "lock";
  const auto start = [&](bool first) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    const int lock = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
    while (!first && ::flock(lock, LOCK_EX | LOCK_NB) == 0) {  // until the first process has it
      ::flock(lock, LOCK_UN);
      ::usleep(1000);
    }
    ::flock(lock, LOCK_EX);
    for (;;) ::pause();
  };
  const pid_t holds = start(true), waits = start(false);
  Inspector inspector(loop_);
  std::vector<verdict::RankDoing> found;
  const auto look = [&](const std::vector<Inspector::Target>& targets) {
    return process::testing::Eventually([&] {
      inspector.Look(targets, [&](std::vector<verdict::RankDoing> ranks) { found = std::move(ranks); });
      loop_.restart();
      loop_.run();
      return found.back().phrase.starts_with("in flock");
    });
  };
  EXPECT_TRUE(look({{3, holds}, {7, waits}}));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[1].waits_for, 3);
  EXPECT_EQ(found[1].stand, stacks::Stand::kMayWait);
  EXPECT_THAT(found[1].Said(), ::testing::EndsWith(" (a lock that rank 3 holds)"));
  // A process that is not a rank holds it.
  EXPECT_TRUE(look({{7, waits}}));
  EXPECT_EQ(found[0].waits_for, -1);
  EXPECT_EQ(found[0].stand, stacks::Stand::kElsewhere);
  for (const pid_t pid : {holds, waits}) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

TEST_F(InspectorTest, AnswersWhenNobodyLives) {
  Inspector inspector(loop_);
  bool done = false;
  inspector.Look({}, [&](const std::vector<verdict::RankDoing>& ranks) { done = ranks.empty(); });
  loop_.run();
  EXPECT_TRUE(done);
}

TEST_F(InspectorTest, AnswersAtTheLimit) {
  Inspector inspector(loop_);
  bool done = false;
  inspector.Look(
      {{0, child_}}, [&](const std::vector<verdict::RankDoing>&) { done = true; }, {},
      std::chrono::nanoseconds(0));
  loop_.run();
  EXPECT_TRUE(done);
}

TEST_F(InspectorTest, MayGoBeforeItsThreads) {
  std::optional<Inspector> inspector(std::in_place, loop_);
  inspector->Look({{0, child_}}, [](const std::vector<verdict::RankDoing>&) { FAIL(); });
  inspector.reset();
  loop_.run();
}

// A host that answers only when the test says so.
class Quiet : public protocol::Host {
 public:
  void Do(const protocol::Command& command) override {
    if (const auto* inspect = std::get_if<protocol::Inspect>(&command)) number = inspect->number;
  }
  std::uint32_t number = 0;
};

protocol::Inspected Answer(std::uint32_t number, int rank) {
  verdict::RankDoing doing;
  doing.rank = rank;
  return {number, {doing}, 1};
}

TEST_F(InspectorTest, ALookAtNoRankMayBeCancelledToo) {
  std::optional<Inspector> inspector(std::in_place, loop_);
  inspector->Look({}, [](const std::vector<verdict::RankDoing>&) { FAIL(); });
  inspector.reset();
  loop_.run();
}

TEST_F(InspectorTest, AnInspectionPutsTheHostsTogether) {
  Quiet first, second;
  job::Inspection inspection(loop_);
  std::optional<protocol::Inspected> all;
  inspection.Begin({{0, &first}, {2, &second}}, [&](const protocol::Inspected& found) { all = found; });
  inspection.Answer(2, Answer(second.number - 1, 9));  // answers an earlier request
  inspection.Answer(2, Answer(second.number, 2));
  EXPECT_FALSE(all);
  inspection.Answer(0, Answer(first.number, 0));
  ASSERT_TRUE(all);
  ASSERT_THAT(all->ranks, SizeIs(2));
  EXPECT_EQ(all->ranks[0].rank, 0);
  EXPECT_EQ(all->ranks[1].rank, 2);
}

}  // namespace
}  // namespace dtrun::node

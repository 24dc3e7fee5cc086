#include "core/membership/remote_shell.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>

#include "core/base/fd.h"
#include "core/process/process.h"
#include "core/process/testing.h"

namespace dtrun::membership {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RemoteShellTest : public ::testing::Test {
 protected:
  void SetUp() override { ::signal(SIGPIPE, SIG_IGN); }

  std::unique_ptr<RemoteShell> Start(const std::string& script, const std::string& line) {
    auto shell = RemoteShell::Start(
        loop_, {"/bin/sh", "-c", script}, line, pids_,
        {[this](const std::string& told) { lines_.push_back(told); },
         [this](const process::Ending& ending) { ending_ = ending; }, [this] { ++written_; }});
    EXPECT_TRUE(shell) << shell.error().text;
    return *std::move(shell);
  }

  void RunUntilItEnds() {
    while (!ending_ && loop_.run_one_for(std::chrono::seconds(60)) > 0) {
    }
    ASSERT_TRUE(ending_);
  }

  boost::asio::io_context loop_;
  std::set<pid_t> pids_;
  std::vector<std::string> lines_;
  std::optional<process::Ending> ending_;
  int written_ = 0;
};

TEST_F(RemoteShellTest, TellsTheLinesOfBothStreamsAndTheEnd) {
  const auto shell = Start("read x; echo out $x; echo; printf 'a\\r\\nb' >&2; exit 3", "word");
  RunUntilItEnds();
  EXPECT_THAT(lines_, ::testing::UnorderedElementsAre("out word", "a", "b"));
  EXPECT_EQ(ending_->code, 3);
}

// A pipe holds 64 KiB, or 4 KiB for a user with many pipes.
TEST_F(RemoteShellTest, ALineLongerThanAPipeWaitsForItsReaderAndNotTheLoop) {
  const process::testing::ScratchDir folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const UniqueFd gate(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  const auto shell = Start("read go < " + fifo + "; cat > /dev/null", std::string(3 << 20, 'x'));
  EXPECT_GT(shell->queued_bytes(), 0u);  // Start has returned although nothing reads
  shell->Write("more\n");
  ASSERT_EQ(::write(gate.get(), "\n", 1), 1);
  while (written_ == 0 && !ending_ && loop_.run_one_for(std::chrono::seconds(60)) > 0) {
  }
  EXPECT_EQ(shell->queued_bytes(), 0u);
}

TEST_F(RemoteShellTest, OneThatNeverReadsCanBeLeft) {
  auto shell = Start("exec sleep 1000", std::string(1 << 20, 'x'));
  EXPECT_THAT(pids_, SizeIs(1));
  shell.reset();
  EXPECT_THAT(pids_, SizeIs(0));
  loop_.run_for(std::chrono::milliseconds(1));
}

TEST_F(RemoteShellTest, OneThatEndsWithoutReadingIsAnEnding) {
  const auto shell = Start("exit 4", std::string(1 << 20, 'x'));
  RunUntilItEnds();
  EXPECT_EQ(ending_->code, 4);
  shell->Write("more\n");
}

TEST_F(RemoteShellTest, NoiseWithoutNewlinesIsReadInBoundedMemory) {
  const auto shell = Start("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end", "word");
  RunUntilItEnds();
  EXPECT_THAT(lines_, ElementsAre(std::string(RemoteShell::kLongestLine, 'x'), "end"));
}

// Like ssh's ControlPersist: the agent sweeps its own children but spares its shells.
TEST_F(RemoteShellTest, WhatItLeavesBehindStaysBelowItWhileItLives) {
  process::BecomeSubreaper();
  const auto shell = Start("(sleep 1000 >/dev/null 2>&1 & echo $!); read x; read x", "go");
  while (lines_.empty() && loop_.run_one_for(std::chrono::seconds(60)) > 0) {
  }
  // After the subshell in between has ended.
  auto left = process::ReadProcess(static_cast<pid_t>(std::stol(lines_.at(0))));
  ASSERT_TRUE(left);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (left && !pids_.contains(left->parent) && left->parent != ::getpid() &&
         std::chrono::steady_clock::now() < deadline) {
    left = process::ReadProcess(left->pid);
  }
  ASSERT_TRUE(left);
  EXPECT_TRUE(pids_.contains(left->parent)) << left->parent;
  ::kill(left->pid, SIGKILL);
}

TEST_F(RemoteShellTest, AClosedGateHoldsWhatItPrintsUp) {
  process::OutputGate gate;
  gate.Close();
  auto shell =
      RemoteShell::Start(loop_, {"/bin/sh", "-c", "echo one; read x; echo two; read x"}, "go", pids_,
                         {[this](const std::string& told) { lines_.push_back(told); }, {}, {}}, &gate);
  ASSERT_TRUE(shell);
  loop_.run_for(std::chrono::milliseconds(20));
  EXPECT_THAT(lines_, SizeIs(0));
  gate.Open();
  while (lines_.size() < 2 && loop_.run_one_for(std::chrono::seconds(60)) > 0) {
  }
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
}

TEST(LineCutter, CutsOnTheWay) {
  process::LineCutter cutter(4);
  std::vector<std::string> lines;
  const auto take = [&](std::string line) { lines.push_back(std::move(line)); };
  cutter.Feed("ab", take);
  cutter.Feed("c\r\n\n12345", take);
  cutter.Feed("6789\nx", take);
  EXPECT_THAT(lines, ElementsAre("abc", "1234"));
  cutter.Finish(take);
  cutter.Finish(take);
  EXPECT_THAT(lines, ElementsAre("abc", "1234", "x"));
}

}  // namespace
}  // namespace dtrun::membership

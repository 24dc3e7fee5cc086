#include "core/process/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

class ChildProcessTest : public ::testing::Test {
 protected:
  void TearDown() override { KillDescendants(std::chrono::seconds(30)); }

  std::shared_ptr<ChildProcess> Start(const std::string& script) {
    SpawnRequest request;
    request.argv = {"/bin/sh", "-c", script};
    request.env = {"PATH=/usr/bin:/bin"};
    request.cwd = std::string("/");
    Child child = std::move(Spawn(request)).value();
    pid_ = child.pid;
    auto process = std::make_shared<ChildProcess>(
        loop_, std::move(child), buffer_,
        [this](output::Stream stream, std::string_view bytes) {
          bytes.empty() ? output_.Close(stream) : output_.Feed(stream, bytes);
        },
        [this](const Ending& ending) { ending_ = ending; }, &gate_);
    process->Watch();
    return process;
  }

  boost::asio::io_context loop_;
  OutputGate gate_;
  testing::MemoryOutput output_;
  std::array<char, 16> buffer_;
  std::optional<Ending> ending_;
  pid_t pid_ = 0;
};

TEST_F(ChildProcessTest, TellsHowItEndedAndEverythingItPrinted) {
  auto process = Start("echo a line longer than the buffer; exit 3");
  loop_.run();
  EXPECT_FALSE(process->living());
  EXPECT_EQ(ending_->code, 3);
  EXPECT_EQ(ending_->signal, 0);
  EXPECT_EQ(output_.out, "a line longer than the buffer\n");
  EXPECT_EQ(output_.closed, 2);
}

TEST_F(ChildProcessTest, KeepsItsPidUntilItIsReaped) {
  auto process = Start("kill -9 $$");
  loop_.run();
  EXPECT_EQ(ending_->signal, SIGKILL);
  EXPECT_EQ(ReadProcess(pid_)->state, 'Z');
  process->Reap();
  EXPECT_FALSE(ReadProcess(pid_));
  process->Signal(SIGKILL);  // must not reach a new process with this pid
}

TEST_F(ChildProcessTest, GivesUpPipesThatAStrangerHoldsOpen) {
  auto process = Start("sleep 1000 & echo last words");
  while (!ending_) loop_.run_one();
  process->FinishOutput();
  EXPECT_EQ(output_.out, "last words\n");
  EXPECT_EQ(output_.closed, 2);
  process->Signal(SIGKILL);
  process->Reap();
}

TEST_F(ChildProcessTest, IsReadNoFurtherWhileTheGateIsClosed) {
  output_.on_feed = [this] { gate_.Close(); };
  auto process = Start("echo a line longer than the buffer");
  while (!ending_) loop_.run_one();
  loop_.poll();
  EXPECT_EQ(output_.out, "a line longer th");  // one read
  output_.on_feed = {};
  loop_.restart();
  gate_.Open();
  loop_.run();
  EXPECT_EQ(output_.out, "a line longer than the buffer\n");
  EXPECT_EQ(output_.closed, 2);
}

TEST_F(ChildProcessTest, LosesNothingWhenItEndsBehindAClosedGate) {
  gate_.Close();
  auto process = Start("echo all of it");
  while (!ending_) loop_.run_one();
  process->FinishOutput();
  EXPECT_EQ(output_.out, "all of it\n");
  gate_.Open();
  process->Reap();
}

}  // namespace
}  // namespace dtrun::process

#include "core/output/sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <thread>

#include "core/output/testing.h"

namespace dtrun::output {
namespace {

// Blocks the same signals as the console's thread.
class SinkTest : public ::testing::Test {
 protected:
  SinkTest() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~SinkTest() override {
    const timespec now{};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    sigtimedwait(&signals, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  int Write(const Sink& sink, std::string_view bytes) { return sink.Write(&bytes, stop_, &taken_); }

  std::atomic<bool> stop_ = false;
  std::atomic<Sink::Clock::rep> taken_ = 0;

 private:
  sigset_t before_;
};

const std::string& Big() {
  static const std::string big = [] {
    std::string text;
    while (text.size() < 1'000'000) text += std::to_string(text.size()) + " ";
    return text;
  }();
  return big;
}

TEST_F(SinkTest, WritesAllToASlowReaderAndLeavesTheFlagsAlone) {
  for (const bool socket : {false, true}) {
    int ends[2];
    ASSERT_EQ(socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC), 0);
    UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const Sink sink(writer.get());
    std::thread writing([&] { EXPECT_EQ(Write(sink, Big()), 0); });
    EXPECT_TRUE(ReadUntil(reader.get(), [](auto& got) { return got.size() >= Big().size(); }) == Big());
    writing.join();
    EXPECT_EQ(fcntl(writer.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(fcntl(reader.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(taken_, 0);
  }
}

TEST_F(SinkTest, StopsWhenToldWhileTheReaderTakesNothing) {
  Pipe pipe;
  const Sink sink(pipe.writer.get());
  std::thread writing([&] { EXPECT_EQ(Write(sink, Big()), ECANCELED); });
  ReadUntil(pipe.reader.get(), [](auto& got) { return !got.empty(); });
  stop_ = true;
  writing.join();
}

TEST_F(SinkTest, WritesThroughADescriptorThatSomebodyMadeNonBlocking) {
  Pipe pipe;
  fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK);
  const Sink sink(pipe.writer.get());
  std::thread writing([&] { EXPECT_EQ(Write(sink, Big()), 0); });
  EXPECT_TRUE(ReadUntil(pipe.reader.get(), [](auto& got) { return got.size() >= Big().size(); }) == Big());
  writing.join();
}

TEST_F(SinkTest, SaysWhyNothingCanBeWritten) {
  Pipe pipe;
  const Sink before(pipe.writer.get());
  pipe.reader.Reset();
  const Sink after(pipe.writer.get());  // cannot be reopened without a reader
  EXPECT_EQ(Write(before, "x"), EPIPE);
  EXPECT_EQ(Write(after, "x"), EPIPE);
  UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(Write(Sink(full.get()), "x"), ENOSPC);
  EXPECT_EQ(Write(Sink(-1), "x"), EBADF);
}

TEST_F(SinkTest, AppendsToAFileWhereItsOtherUsersStand) {
  TempFolder folder;
  UniqueFd file(open((folder.path() / "file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(file.get(), "header ", 7), 7);
  const Sink sink(file.get());
  EXPECT_FALSE(sink.terminal());
  EXPECT_EQ(sink.columns(), 80);
  EXPECT_EQ(Write(sink, "line"), 0);
  ASSERT_EQ(write(file.get(), " end", 4), 4);
  EXPECT_EQ(ReadFile(folder.path() / "file"), "header line end");
}

}  // namespace
}  // namespace dtrun::output

#include "tools/bench/program/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

namespace dtrun::bench {
namespace {

struct Ends {
  Channel a, b;
};

Ends Pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  return {Channel(UniqueFd(fds[0])), Channel(UniqueFd(fds[1]))};
}

TEST(BenchChannel, KeepsLinesApartThatCameTogether) {
  Ends ends = Pair();
  EXPECT_TRUE(ends.a.Send("one") && ends.a.Send("two words"));
  EXPECT_EQ(ends.b.Receive(), "one");
  EXPECT_EQ(ends.b.Next(), "two words");
  EXPECT_EQ(ends.b.Next(), std::nullopt);
}

TEST(BenchChannel, JoinsALineThatIsLongerThanARead) {
  Ends ends = Pair();
  const std::string line(100'000, 'x');
  std::thread sender([&] { EXPECT_TRUE(ends.a.Send(line)); });
  EXPECT_EQ(ends.b.Receive(), line);
  sender.join();
}

TEST(BenchChannel, TellsThatTheOtherSideIsGone) {
  Ends ends = Pair();
  { const Channel gone = std::move(ends.a); }
  EXPECT_EQ(ends.b.Receive(), std::nullopt);
  EXPECT_FALSE(ends.b.Send("anyone?"));
}

TEST(BenchChannel, SaysWhereItCouldNotConnect) {
  EXPECT_THAT(Channel::Connect("/nowhere/socket").error().text, ::testing::HasSubstr("'/nowhere/socket'"));
  EXPECT_FALSE(Channel::Connect("/" + std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace dtrun::bench

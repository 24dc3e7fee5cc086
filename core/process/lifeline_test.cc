#include "core/process/lifeline.h"

#include <gtest/gtest.h>

#include <csignal>

#include "core/process/testing.h"

namespace dtrun::process {
namespace {

std::string Receive(int fd) {
  std::string message(kMessageBytes + 1, '\0');
  const ssize_t size = ::recv(fd, message.data(), message.size(), 0);
  message.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return message;
}

TEST(Lifeline, HandsOutSignalsInOrderThenNothing) {
  testing::SocketPair pair;
  Lifeline lifeline("/tmp", std::move(pair.theirs));
  EXPECT_EQ(lifeline.Next(), Lifeline::kNothing);
  for (char signal : {SIGINT, SIGUSR1}) ASSERT_EQ(::send(pair.ours.get(), &signal, 1, 0), 1);
  EXPECT_EQ(lifeline.Next(), SIGINT);
  EXPECT_EQ(lifeline.Next(), SIGUSR1);
  EXPECT_EQ(lifeline.Next(), Lifeline::kNothing);
}

TEST(Lifeline, NoticesThatTheGuardIsGoneAndStaysQuietThen) {
  testing::SocketPair pair;
  Lifeline lifeline("/tmp", std::move(pair.theirs));
  pair.ours.Reset();
  EXPECT_EQ(lifeline.Next(), Lifeline::kGuardGone);
  lifeline.Stopped();
  lifeline.LastWords("no reader");
  EXPECT_EQ(lifeline.Next(), Lifeline::kGuardGone);
}

TEST(Lifeline, SendsLastWordsCutToOneMessage) {
  testing::SocketPair pair;
  Lifeline lifeline("/tmp", std::move(pair.theirs));
  lifeline.LastWords("logs: here\n");
  EXPECT_EQ(Receive(pair.ours.get()), "Llogs: here\n");
  lifeline.LastWords(std::string(2 * kMessageBytes, 'x'));
  EXPECT_EQ(Receive(pair.ours.get()).size(), kMessageBytes);
  lifeline.Stopped();
  EXPECT_EQ(Receive(pair.ours.get()), "S");
}

}  // namespace
}  // namespace dtrun::process

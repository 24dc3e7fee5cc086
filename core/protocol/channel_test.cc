#include "core/protocol/channel.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/protocol/testing.h"

namespace dtrun::protocol {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Channel, CarriesMessagesBothWaysInOrder) {
  Pair pair;
  for (int i = 0; i < 5000; ++i) {
    pair.near.channel->Send("n" + std::to_string(i));
    pair.far.channel->Send("f" + std::to_string(i));
  }
  ASSERT_TRUE(pair.Until([&] { return pair.near.count == 5000 && pair.far.count == 5000; }));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(pair.far.messages[static_cast<std::size_t>(i)], "n" + std::to_string(i));
    ASSERT_EQ(pair.near.messages[static_cast<std::size_t>(i)], "f" + std::to_string(i));
  }
}

TEST(Channel, CarriesEmptyAndLargeMessages) {
  Pair pair;
  std::string large(kMaxMessageBytes, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4099) large[i] = static_cast<char>(i);
  pair.near.channel->Send("");
  pair.near.channel->Send(large);
  EXPECT_GT(pair.near.channel->queued_bytes(), kMaxMessageBytes);
  ASSERT_TRUE(pair.Until([&] { return pair.far.count == 2 && pair.near.drained > 0; }));
  EXPECT_EQ(pair.far.messages[0], "");
  EXPECT_TRUE(pair.far.messages[1] == large);
  EXPECT_EQ(pair.near.channel->queued_bytes(), 0u);
}

TEST(Channel, ChangesKeysOnTheWayWithoutLosingAByte) {
  Pair pair(seconds(60), seconds(60), false);
  const std::string message(1 << 20, 'x');
  for (int i = 0; i < 200; ++i) {  // three keys each way
    pair.near.channel->Send(message);
    pair.far.channel->Send(message);
    const auto expected = static_cast<std::size_t>(i);
    ASSERT_TRUE(pair.Until([&] { return pair.near.count + 8 > expected && pair.far.count + 8 > expected; }));
  }
  ASSERT_TRUE(pair.Until([&] { return pair.near.count == 200 && pair.far.count == 200; }));
  EXPECT_EQ(pair.near.bytes, 200 * message.size());
  EXPECT_EQ(pair.far.bytes, 200 * message.size());
}

TEST(Channel, EndsWhenAMessageIsLargerThanAllowed) {
  Pair pair;
  pair.near.channel->Send(std::string(kMaxMessageBytes + 1, 'x'));
  EXPECT_TRUE(pair.near.losses.empty());  // never from within
  ASSERT_TRUE(pair.Until([&] { return !pair.near.losses.empty() && !pair.far.losses.empty(); }));
  EXPECT_THAT(pair.near.losses[0].error.text, HasSubstr("a message of 67108865 bytes"));
}

TEST(Channel, TellsAPeerThatClosedFromOneThatIsLost) {
  Pair pair;
  bool done = false;
  pair.near.channel->Send("last words");
  pair.near.channel->Close([&] { done = true; });
  pair.near.channel->Send("too late");
  EXPECT_FALSE(done);
  ASSERT_TRUE(pair.Until([&] { return done && !pair.far.losses.empty(); }));
  EXPECT_EQ(pair.far.messages, (std::vector<std::string>{"last words"}));
  ASSERT_EQ(pair.far.losses.size(), 1u);
  EXPECT_TRUE(pair.far.losses[0].closed);
  EXPECT_THAT(pair.far.losses[0].error.text, HasSubstr("closed the control link"));
  EXPECT_TRUE(pair.near.losses.empty());
}

TEST(Channel, DeliversEverythingQueuedBeforeACloseEvenWhenTheObjectIsGone) {
  Pair pair(seconds(60), seconds(60), false);
  for (int i = 0; i < 100; ++i) pair.near.channel->Send(std::string(100'000, 'x'));
  pair.near.channel->Close();
  pair.near.channel.reset();
  pair.far.channel->Send("on its way while the peer closes");
  ASSERT_TRUE(pair.Until([&] { return !pair.far.losses.empty(); }));
  EXPECT_TRUE(pair.far.losses[0].closed) << pair.far.losses[0].error.text;
  EXPECT_EQ(pair.far.bytes, 10'000'000u);
}

TEST(Channel, ReportsADestroyedPeerAsLost) {
  Pair pair;
  pair.near.channel.reset();
  ASSERT_TRUE(pair.Until([&] { return !pair.far.losses.empty(); }));
  EXPECT_FALSE(pair.far.losses[0].closed);
  EXPECT_EQ(pair.far.losses[0].error.code, DTRUN_REMOTE_FAILURE);
  EXPECT_THAT(
      pair.far.losses[0].error.text,
      AllOf(HasSubstr("127.0.0.1:" + std::to_string(pair.root.listener->port())), HasSubstr("is lost")));
}

TEST(Channel, BothEndsMayCloseAtOnce) {
  Pair pair;
  int done = 0;
  pair.near.channel->Close([&] { ++done; });
  pair.far.channel->Close([&] { ++done; });
  ASSERT_TRUE(pair.Until([&] { return done == 2; }));
  EXPECT_TRUE(pair.near.losses.empty());
  EXPECT_TRUE(pair.far.losses.empty());
}

TEST(Channel, MayBeDestroyedByItsOwnHandlers) {
  Pair pair;
  pair.far.on_message = [&](std::string_view) { pair.far.channel.reset(); };
  pair.near.channel->Send("1");
  pair.near.channel->Send("2");
  ASSERT_TRUE(pair.Until([&] { return !pair.near.losses.empty(); }));
  EXPECT_EQ(pair.far.count, 1u);
  EXPECT_TRUE(pair.far.losses.empty());
}

TEST(Channel, MayBeClosedByItsOwnHandlers) {
  Pair pair;
  pair.far.on_message = [&](std::string_view) { pair.far.channel->Close(); };
  pair.near.channel->Send("1");
  pair.near.channel->Send("2");
  ASSERT_TRUE(pair.Until([&] { return !pair.near.losses.empty(); }));
  EXPECT_EQ(pair.far.count, 1u);
  EXPECT_TRUE(pair.near.losses[0].closed);
}

TEST(Channel, StaysUpWithNothingToSay) {
  Pair pair(seconds(1), milliseconds(700));
  bool later = false;
  asio::steady_timer timer(pair.loop, milliseconds(2500));
  timer.async_wait([&](error_code) { later = true; });
  ASSERT_TRUE(pair.Until([&] { return later; }));
  EXPECT_TRUE(pair.near.losses.empty());
  EXPECT_TRUE(pair.far.losses.empty());
  EXPECT_EQ(pair.near.count + pair.far.count, 0u);  // heartbeats are not messages
}

TEST(Channel, DoesNotBlameThePeerForTheTimeThatItsOwnLoopStood) {
  Pair pair(milliseconds(300), seconds(60));
  ::usleep(900'000);  // both ends share this loop; this tests the root's watch
  pair.far.channel->Send("still here");
  ASSERT_TRUE(pair.Until([&] { return pair.near.count == 1 || !pair.near.losses.empty(); }));
  EXPECT_TRUE(pair.near.losses.empty());
}

TEST(Channel, TellsOfALossFromBeforeItsStart) {
  asio::io_context loop;
  Root root(loop);
  Agent agent(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && !root.joined.empty(); }));
  agent.channel->Send(std::string(kMaxMessageBytes + 1, 'x'));
  loop.restart();
  while (loop.poll_one() > 0) {
  }
  End near, far;
  near.Take(std::move(root.joined.front()));
  far.Take(std::move(agent.channel));
  EXPECT_TRUE(far.losses.empty());  // never from within
  ASSERT_TRUE(RunUntil(loop, [&] { return !near.losses.empty() && !far.losses.empty(); }));
  EXPECT_EQ(far.losses[0].error.code, DTRUN_INTERNAL);
  EXPECT_FALSE(near.losses[0].closed);
}

// A root, and an agent in a separate process that can be stopped.
struct ForkedAgent {
  explicit ForkedAgent(const Dialer::Options& way) {
    pid = ::fork();
    if (pid != 0) return;
    asio::io_context loop;
    End end;
    auto dialer = Dialer::Start(loop, way,
                                {.on_joined =
                                     [&](const Welcome&, std::unique_ptr<Channel> channel) {
                                       end.Take(std::move(channel));
                                       end.channel->Send("up");
                                     },
                                 .on_failed = [](const Error&) { ::_exit(1); }});
    for (;;) {
      loop.restart();
      loop.run_for(seconds(1));
      if (!end.losses.empty()) ::_exit(0);
    }
  }
  ~ForkedAgent() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  pid_t pid = -1;
};

TEST(Channel, GivesAStoppedPeerUpWithinTheLimitThoughTcpStands) {
  static constexpr milliseconds kLimit{1000};
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.welcome.loss_limit = kLimit; });
  ForkedAgent agent(root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return !root.joined.empty(); }));
  End end;
  end.Take(std::move(root.joined.front()));
  ASSERT_TRUE(RunUntil(loop, [&] { return end.count == 1; }));

  ::kill(agent.pid, SIGSTOP);
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(RunUntil(loop, [&] { return !end.losses.empty(); }));
  const auto took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(end.losses[0].error.code, DTRUN_TIMEOUT);
  EXPECT_THAT(end.losses[0].error.text, HasSubstr("silent for 1s although the connection is open"));
  EXPECT_GE(took, kLimit / 2);
  EXPECT_LE(took, kLimit + seconds(1));  // the limit plus time for a loaded machine
}

TEST(Channel, SeesAKilledPeerAtOnce) {
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.welcome.loss_limit = std::chrono::hours(1); });
  ForkedAgent agent(root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return !root.joined.empty(); }));
  End end;
  end.Take(std::move(root.joined.front()));
  ASSERT_TRUE(RunUntil(loop, [&] { return end.count == 1; }));
  ::kill(agent.pid, SIGKILL);
  ASSERT_TRUE(RunUntil(loop, [&] { return !end.losses.empty(); }));
  EXPECT_FALSE(end.losses[0].closed);
  EXPECT_EQ(end.losses[0].error.code, DTRUN_REMOTE_FAILURE);
}

TEST(Channel, EndsACloseThatThePeerDoesNotTakeWithinTheLimit) {
  asio::io_context loop;
  Root root(loop, [](Listener::Options& options) { options.welcome.loss_limit = milliseconds(300); });
  Agent agent(loop, root.Way());
  ASSERT_TRUE(RunUntil(loop, [&] { return agent.ended && !root.joined.empty(); }));
  bool done = false;  // the agent's end is never started, so it reads nothing
  root.joined.front()->Close([&] { done = true; });
  ASSERT_TRUE(RunUntil(loop, [&] { return done; }));
}

}  // namespace
}  // namespace dtrun::protocol

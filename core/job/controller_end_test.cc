#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/job/controller.h"
#include "core/job/testing_controller.h"
#include "core/verdict/cause.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

using testing::ControllerTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Keeper;
using testing::kSleep;
using testing::kTerminated;
using ::testing::MatchesRegex;
using testing::ScriptedHost;
using ::testing::StartsWith;

TEST_F(ControllerTest, EndsTheOthersWhenThoseHaveSucceededWhoseSuccessIsTheJobs) {
  Plan({"sleep 0.1", kSleep, "exit 0", "trap 'exit 7' TERM; while :; do sleep 0.05; done"});
  plan_.roles = {"chief", "worker", "worker", "ps"};
  plan_.success = {"chief"};
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(verdict::ExitCode(facts), 0) << verdict::VerdictText(facts);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGTERM);
  EXPECT_EQ(facts.ranks[3].ending->code, 7);
  EXPECT_THAT(said_, ElementsAre("dtrun: every chief has succeeded: asked ranks 1, 3 to end"));
}

TEST_F(ControllerTest, FailsWhenAnyRankFailsBeforeThoseHaveSucceeded) {
  Plan({kSleep, "exit 5"});
  plan_.roles = {"chief", "ps"};
  plan_.success = {"chief"};
  EXPECT_EQ(verdict::ExitCode(MustRun()), 5);
}

// Like ranks that lack a module, each with its own timing.
TEST_F(ControllerTest, LetsRanksFailAlikeBeforeTheyHaveJoined) {
  const std::string fails = "printf 'ValueError: x'; exit 1";
  Plan({": > $DIR/first; " + fails, "while [ ! -e $DIR/first ]; do sleep 0.01; done; sleep 0.1; " + fails});
  fails_alike_within_ = std::chrono::hours(1);
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.ranks[0].ending->code, 1);
  EXPECT_EQ(facts.ranks[1].ending->code, 1);
  EXPECT_THAT(verdict::VerdictText(facts), HasSubstr("failed the same way: ValueError: x"));
}

TEST_F(ControllerTest, KillsARankThatIgnoresSigtermAfterTheGrace) {
  Plan({"trap '' TERM; : > $DIR/armed; while :; do sleep 1000; done",
        "while [ ! -e $DIR/armed ]; do sleep 0.01; done; exit 5"});
  plan_.grace = std::chrono::milliseconds(50);
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGKILL);
  EXPECT_EQ(facts.ranks[0].signal_sent, SIGKILL);
  EXPECT_GE(facts.ranks[0].ended_at - facts.ranks[1].ended_at, std::chrono::milliseconds(50));
  EXPECT_THAT(said_, ElementsAre(StartsWith("dtrun: rank 0 did not stop within 50ms: killing")));
}

TEST_F(ControllerTest, TakesAnotherGraceWhileItEnds) {
  Plan({"trap '' TERM; echo ready; while :; do sleep 1000; done"});
  plan_.grace = std::chrono::hours(1);
  WhenReady([this] {
    controller_->SetGrace(std::chrono::minutes(30));
    Send(SIGTERM);
  });
  on_say_ = [this] { controller_->SetGrace(std::chrono::nanoseconds(0)); };
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGKILL);
  EXPECT_THAT(said_, ::testing::Contains(HasSubstr("they have 30m")));
}

TEST_F(ControllerTest, EndsTheGroupOfTheFailedRank) {
  Plan(
      {"(trap '' TERM; : > $DIR/armed; exec sleep 1000) & while [ ! -e $DIR/armed ]; do sleep 0.01; done; "
       "exit 4"});
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 0);
  EXPECT_LT(facts.duration, std::chrono::minutes(1));
}

TEST_F(ControllerTest, StopsAStoppedRank) {
  Plan({"kill -STOP $$; exit 1", "exit 3"});
  EXPECT_EQ(MustRun().first_failed, 1);
}

TEST_F(ControllerTest, ForwardsAnInterruptAndReportsItAsTheCause) {
  Plan({"echo ready; exec sleep 1000", kSleep});
  WhenReady([this] { Send(SIGINT); });
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGINT);
  EXPECT_EQ(facts.first_failed, -1);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGINT);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGINT);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("Ctrl-C again")));
}

TEST_F(ControllerTest, EndsTheRanksWhenTheTimeIsUp) {
  Plan({"echo ready; exec sleep 1000", kSleep});
  WhenReady([this] { signals_.EndAfter(std::chrono::milliseconds(1)); });
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.time_limit, "1ms");
  EXPECT_EQ(verdict::ExitCode(facts), 124) << verdict::VerdictText(facts);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGTERM);
  EXPECT_TRUE(facts.ranks[1].doing);
  EXPECT_THAT(
      said_, ElementsAre(StartsWith("dtrun: the job reached job.time_limit = 1ms: asked all ranks to stop")));
  EXPECT_FALSE(Run()) << "the time is up for a next generation, too";
  EXPECT_EQ(controller_->interrupted(), process::UserSignals::kTimeLimit);
}

TEST_F(ControllerTest, KillsAtOnceOnTheSecondInterrupt) {
  Plan({"trap '' INT; echo ready; while :; do sleep 1000; done"});
  WhenReady([this] { Send(SIGINT); });
  on_say_ = [this] { Send(SIGINT); };
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGINT);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGKILL);
}

TEST_F(ControllerTest, TakesADirectSigtermAsARelayedOne) {
  Plan({"echo ready; exec sleep 1000"});
  WhenReady([] { ::kill(::getpid(), SIGTERM); });
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGTERM);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGTERM);
}

TEST_F(ControllerTest, OnlyForwardsUserSignals) {
  Plan({"trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.01; done"});
  WhenReady([this] { Send(SIGUSR1); });
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, 0);
  EXPECT_EQ(facts.first_failed, -1);
  EXPECT_EQ(printed_[0], "ready\ngot\n");
}

TEST_F(ControllerTest, StopsTheRanksOnCtrlZAndWakesThem) {
  Plan({"echo ready; exec sleep 1000"});
  WhenReady([this] { Send(SIGTSTP); });
  boost::asio::posix::stream_descriptor guard(loop_, ::dup(control_.ours.get()));
  guard.async_wait(guard.wait_read, [&](const boost::system::error_code&) {
    char message = 0;
    ASSERT_EQ(::recv(control_.ours.get(), &message, 1, 0), 1);
    EXPECT_EQ(message, process::kMessageStopped);
    const auto marked = process::testing::Marked(mark_);
    ASSERT_EQ(marked.size(), 1u);
    EXPECT_TRUE(process::testing::Eventually([&] { return process::ReadProcess(marked[0])->state == 'T'; }));
    Send(SIGCONT);
    Send(SIGTERM);
  });
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.interrupt, SIGTERM);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGTERM);
}

TEST_F(ControllerTest, KillsEverythingWhenTheGuardIsGone) {
  Plan(
      {"setsid sh -c 'trap \"\" TERM; : > $DIR/up; while :; do sleep 1000; done' &"
       " while [ ! -e $DIR/up ]; do sleep 0.01; done; echo ready; exec sleep 1000",
       "trap '' TERM; while :; do sleep 1000; done"});
  WhenReady([this] { control_.ours.Reset(); });
  const verdict::Facts facts = MustRun();
  EXPECT_TRUE(facts.guard_died);
}

TEST_F(ControllerTest, NamesAndStopsWhatARankLeftBehindInItsOwnSession) {
  // It also keeps the rank's stdout open, which must not delay the end of the job.
  Plan({"true", "setsid sh -c ': > $DIR/up; kill -STOP $$' & while [ ! -e $DIR/up ]; do sleep 0.01; done"});
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, -1);
  EXPECT_THAT(said_, ElementsAre(MatchesRegex("dtrun: rank 1 left 1 process behind .[0-9]+ sh.: stopped")));
}

TEST_F(ControllerTest, KillsALeftoverThatIgnoresSigterm) {
  Plan({"(trap '' TERM; : > $DIR/up; exec sleep 1000) & while [ ! -e $DIR/up ]; do sleep 0.01; done"});
  plan_.grace = std::chrono::milliseconds(20);
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("rank 0 left 1 process behind")));
}

// torch's gloo prints this when a peer is gone.
protocol::Output LostPeer(int rank) {
  return {rank, output::Stream::kOut,
          "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer "
          "[127.0.0.1]:4711\n"};
}

TEST_F(ControllerTest, AwaitsWhoClosedAConnectionAndNobodyAfterThat) {
  Plan({"", "", "", ""});
  // Rank 1 has lost the same connection; rank 2 is the one that left.
  const std::vector<protocol::Event> at_start = {protocol::Started{{1, 2, 3, 4}}, LostPeer(0),
                                                 protocol::Ended{0, {1, 0}},      LostPeer(1),
                                                 protocol::Ended{1, {1, 0}},      protocol::Ended{2, {0, 0}}};
  // Plus its own Prepared.
  const int until_it_left = static_cast<int>(at_start.size()) + 1;
  ScriptedHost host(loop_, at_start, {protocol::Ended{3, kTerminated, SIGTERM}, protocol::Gone()});
  Controller controller(
      loop_, signals_, plan_, {&host}, [](const std::string&) {}, log_);
  ASSERT_TRUE(controller.Prepare(0, std::string(64, '0')));
  World world;
  world.tokens.resize(1);
  for (auto& output : owned_) world.outputs.push_back(std::make_unique<Keeper>(*output));
  world.leaves_within = std::chrono::hours(1);
  ASSERT_TRUE(controller.Run(std::move(world)));
  const verdict::Facts* const facts = &log_.facts();
  EXPECT_EQ(host.told_at_stop, until_it_left);
  EXPECT_EQ(facts->first_failed, 0);
  EXPECT_EQ(facts->ranks[2].ending->code, 0);
  EXPECT_EQ(facts->ranks[3].ending->signal, SIGTERM);
}

TEST_F(ControllerTest, AwaitsTheEndOfOneThatLeftInTheMiddle) {
  Plan({"", "", ""});
  // Rank 0 lost rank 1, which has left the job and is still exiting. Rank 2 lost it too and reports it.
  const std::string why = "rank 1 left the communicator while rank 0 waited for it";
  const std::vector<protocol::Event> at_start = {protocol::Started{{1, 2, 3}}, protocol::Ended{0, {1, 0}},
                                                 protocol::Ended{2, {1, 0}}, protocol::Ended{1, {3, 0}}};
  const int until_it_ended = static_cast<int>(at_start.size()) + 1;  // plus its own Prepared
  ScriptedHost host(loop_, at_start, {protocol::Gone()});
  Controller controller(
      loop_, signals_, plan_, {&host}, [](const std::string&) {}, log_);
  ASSERT_TRUE(controller.Prepare(0, std::string(64, '0')));
  boost::asio::post(loop_, [&] {
    log_.Add(fact::Reported{{1}, {2, "rank 2 left the communicator"}});
    log_.Add(fact::Left{{1}});
    log_.Add(fact::Joined{{1}});  // again
    log_.Add(fact::Left{{1}});
    log_.Add(fact::Reported{{0}, {1, why}});
    log_.Add(fact::Reported{{2}, {1, why}});
  });
  World world;
  world.tokens.resize(1);
  for (auto& output : owned_) world.outputs.push_back(std::make_unique<Keeper>(*output));
  world.leaves_within = std::chrono::nanoseconds(0);
  world.ends_within = std::chrono::hours(1);
  ASSERT_TRUE(controller.Run(std::move(world)));
  const verdict::Facts* const facts = &log_.facts();
  EXPECT_EQ(host.told_at_stop, until_it_ended);
  EXPECT_EQ(facts->ranks[1].ending->code, 3);
  EXPECT_EQ(verdict::FindCause(*facts).index, 1U);
}

verdict::RankDoing Doing(int rank, stacks::Stand stand, int waits_for = -1) {
  verdict::RankDoing doing;
  doing.rank = rank;
  doing.stand = stand;
  doing.waits_for = waits_for;
  return doing;
}

TEST_F(ControllerTest, KnowsWhoWaitedForALockThatTheEndOfARankFreed) {
  Plan({"", ""});
  ScriptedHost host(loop_,
                    {protocol::Started{{1, 2}},
                     protocol::Output{0, output::Stream::kErr, "Traceback (most recent call last):\n"}},
                    {protocol::Ended{1, kTerminated, SIGTERM}, protocol::Gone()});
  host.looks = {{Doing(0, stacks::Stand::kWaits), Doing(1, stacks::Stand::kMayWait, 0)},
                {Doing(1, stacks::Stand::kElsewhere)}};
  host.after_look = {
      protocol::Output{0, output::Stream::kOut,
                       "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
                       "4000ms for recv operation to complete\n"},
      protocol::Ended{0, {1, 0}}};
  Controller controller(
      loop_, signals_, plan_, {&host}, [](const std::string&) {}, log_);
  ASSERT_TRUE(controller.Prepare(0, std::string(64, '0')));
  World world;
  world.tokens.resize(1);
  for (auto& output : owned_) world.outputs.push_back(std::make_unique<Keeper>(*output));
  ASSERT_TRUE(controller.Run(std::move(world)));
  const verdict::Facts* const facts = &log_.facts();
  EXPECT_EQ(facts->ranks[1].doing->stand, stacks::Stand::kElsewhere);
  ASSERT_TRUE(facts->ranks[1].lock);
  EXPECT_EQ(facts->ranks[1].lock->holder, 0);
}

}  // namespace
}  // namespace dtrun::job

#include "core/job/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/job/testing_controller.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

using testing::ControllerTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Keeper;
using testing::kSleep;
using testing::kTerminated;
using testing::ScriptedHost;

TEST_F(ControllerTest, RunsAllRanksToTheirEndAndKeepsTheirStreamsApart) {
  Plan({"echo out; echo err >&2", "printf unfinished"});
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, -1);
  ASSERT_EQ(facts.ranks.size(), 2u);
  EXPECT_FALSE(facts.ranks[0].ending->failed());
  EXPECT_EQ(facts.ranks[1].host, "localhost");
  EXPECT_THAT(printed_, ElementsAre("out\n", "unfinished"));
  EXPECT_THAT(complained_, ElementsAre("err\n", ""));
  EXPECT_THAT(closed_, ElementsAre(2, 2));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(ControllerTest, StopsTheOthersWhenARankFails) {
  Plan({kSleep, "exit 3", kSleep});
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[1].ending->code, 3);
  EXPECT_EQ(facts.ranks[1].signal_sent, 0);
  for (int i : {0, 2}) {
    EXPECT_EQ(facts.ranks[i].ending->signal, SIGTERM);
    EXPECT_EQ(facts.ranks[i].signal_sent, SIGTERM);
    EXPECT_GE(facts.ranks[i].ended_at, facts.ranks[1].ended_at);
  }
}

TEST_F(ControllerTest, KeepsTheFirstFailureWhenOthersFollow) {
  Plan({"trap 'exit 9' TERM; : > $DIR/armed; while :; do sleep 0.01; done",
        "while [ ! -e $DIR/armed ]; do sleep 0.01; done; kill -9 $$"});
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGKILL);
  EXPECT_EQ(facts.ranks[0].ending->code, 9);
}

TEST_F(ControllerTest, LetsOthersRunOnWhenARankSucceeds) {
  Plan({"while [ ! -e $DIR/go ]; do sleep 0.01; done; echo done", ": > $DIR/go"});
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_EQ(printed_[0], "done\n");
}

TEST_F(ControllerTest, GivesStdinToRankZeroOnly) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "hello", 5), 5);
  writer.Reset();
  Plan({"cat", "cat"});
  MustRun(reader.get());
  EXPECT_THAT(printed_, ElementsAre("hello", ""));
}

TEST_F(ControllerTest, LosesNothingOfFastOutput) {
  Plan({"head -c 20000000 /dev/zero | tr '\\0' x", "head -c 20000000 /dev/zero | tr '\\0' y >&2"});
  EXPECT_EQ(MustRun().first_failed, -1);
  const auto is_all = [](const std::string& text, char letter) {
    return text.size() == 20000000 && text.find_first_not_of(letter) == std::string::npos;
  };
  EXPECT_TRUE(is_all(printed_[0], 'x'));
  EXPECT_TRUE(is_all(complained_[1], 'y'));
}

TEST_F(ControllerTest, UndoesTheStartWhenARankCannotBeStarted) {
  Plan({kSleep, kSleep, kSleep});
  plan_.processes[2].argv = {"/nowhere/train"};
  const Result<verdict::Facts> facts = Run();
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().text, HasSubstr("rank 2: cannot run '/nowhere/train'"));
  EXPECT_THAT(process::testing::Marked(mark_), IsEmpty());
}

TEST_F(ControllerTest, NotesWhatTheStoreTells) {
  Plan({"echo ready; exit 0", "exit 0"});
  WhenReady([this] {
    log_.Add(fact::Joined{{0}});
    log_.Add(fact::Left{{0}});
    log_.Add(fact::Reported{{1}, {0, "connection reset by rank 0"}});
    log_.Add(fact::Joined{{99}});
  });
  const verdict::Facts facts = MustRun();
  EXPECT_TRUE(facts.ranks[0].joined);
  EXPECT_TRUE(facts.ranks[0].left);
  EXPECT_FALSE(facts.ranks[1].joined);
  ASSERT_EQ(facts.ranks[1].reports.size(), 1u);
  EXPECT_EQ(facts.ranks[1].reports[0].peer, 0);
}

TEST_F(ControllerTest, EndsRanksThatShouldHaveJoinedLongAgoWhereThatFailsTheJob) {
  Plan({""});
  ScriptedHost host(loop_,
                    {protocol::Started{{1}}, protocol::RendezvousSeen{false, {"PyTorch"}, false, false},
                     protocol::RendezvousSeen{false, {"PyTorch"}, true, true}},
                    {protocol::Ended{0, kTerminated, SIGTERM}, protocol::Gone()});
  Controller controller(
      loop_, signals_, plan_, {&host}, [](const std::string&) {}, log_);
  ASSERT_TRUE(controller.Prepare(0, std::string(64, '0')));
  World world;
  world.tokens.resize(1);
  world.outputs.push_back(std::make_unique<Keeper>(*owned_[0]));
  world.isolated_ranks = observe::IsolationPolicy::kFail;
  ASSERT_TRUE(controller.Run(std::move(world)));
  const verdict::Facts* const facts = &log_.facts();
  EXPECT_EQ(facts->first_failed, -1);
  ASSERT_TRUE(facts->isolated_ranks);
  EXPECT_THAT(facts->isolated_ranks->what, HasSubstr("PyTorch"));
}

TEST_F(ControllerTest, RunsAsManyGenerationsAsItIsAsked) {
  Plan({"exit 3"});
  EXPECT_EQ(MustRun().first_failed, 0);
  ASSERT_TRUE(controller_->Prepare(1, std::string(64, '1')));
  World world;
  world.tokens.resize(1);
  world.outputs.push_back(std::make_unique<Keeper>(*owned_[0]));
  ASSERT_TRUE(controller_->Run(std::move(world)));
  const verdict::Facts* const facts = &log_.facts();
  EXPECT_EQ(facts->generation, 1u);
  EXPECT_EQ(facts->ranks[0].ending->code, 3);
}

TEST_F(ControllerTest, TellsAUserWhereTheRanksAre) {
  Plan({std::string("echo ready; ") + kSleep, kSleep});
  std::vector<control::Answer> answers;
  const auto reply = [&](control::Answer answer) {
    answers.push_back(std::move(answer));
    if (answers.size() == 3) Send(SIGTERM);
  };
  WhenReady([&] {
    controller_->Answer({.what = control::What::kState}, {}, reply);
    controller_->Answer({.what = control::What::kPlaces}, {}, reply);
    controller_->Answer({.what = control::What::kPlaces}, {}, reply);  // waits for its turn
  });
  MustRun();
  ASSERT_EQ(answers.size(), 3U);
  for (const control::Answer& answer : answers) {
    EXPECT_EQ(answer.state, "running");
    ASSERT_EQ(answer.ranks.size(), 2U);
    EXPECT_GT(answer.ranks[1].pid, 0);
    EXPECT_FALSE(answer.ranks[1].ended);
  }
  EXPECT_TRUE(answers[0].places.empty());
  ASSERT_EQ(answers[1].places.size(), 2U);
  EXPECT_EQ(answers[1].places[1].rank, 1);
  EXPECT_FALSE(answers[1].places[1].phrase.empty());
  EXPECT_EQ(answers[2].places.size(), 2U);
}

// A user's look neither takes the verdict's look away nor is lost by it.
TEST_F(ControllerTest, AnswersAUserWhileTheGenerationEnds) {
  Plan({std::string("echo ready; ") + kSleep});
  std::vector<control::Answer> answers;
  WhenReady([&] {
    controller_->Answer({.what = control::What::kPlaces}, {},
                        [&](control::Answer answer) { answers.push_back(std::move(answer)); });
    Send(SIGTERM);
  });
  MustRun();
  EXPECT_EQ(answers.size(), 1U);
}

TEST_F(ControllerTest, EndsAWaitWhenTheUserDoes) {
  Plan({"exit 3"});
  MustRun();
  EXPECT_TRUE(controller_->Wait(std::chrono::milliseconds(1)));
  Send(SIGINT);
  EXPECT_FALSE(controller_->Wait(std::chrono::hours(1)));
  EXPECT_EQ(controller_->interrupted(), SIGINT);
}

TEST_F(ControllerTest, ReplacesVariablesOfItsOwnEnvironment) {
  ::setenv("DTRUN_TEST_COLOUR", "red", 1);
  Plan({"env | grep -c ^DTRUN_TEST_COLOUR; echo $DTRUN_TEST_COLOUR", "echo $DTRUN_TEST_COLOUR"});
  plan_.processes[0].env["DTRUN_TEST_COLOUR"] = "blue";
  MustRun();
  ::unsetenv("DTRUN_TEST_COLOUR");
  EXPECT_THAT(printed_, ElementsAre("1\nblue\n", "red\n"));
}

}  // namespace
}  // namespace dtrun::job

#include "core/agent/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/agent/testing_conductor.h"
#include "core/agent/verdict.h"

namespace dtrun::agent {
namespace {

using testing::ConductorTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Keeper;
using testing::kSleep;
using testing::kTerminated;
using testing::ScriptedHost;

TEST_F(ConductorTest, RunsAllRanksToTheirEndAndKeepsTheirStreamsApart) {
  Plan({"echo out; echo err >&2", "printf unfinished"});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, -1);
  ASSERT_EQ(facts.ranks.size(), 2u);
  EXPECT_FALSE(facts.ranks[0].ending->failed());
  EXPECT_EQ(facts.ranks[1].host, "localhost");
  EXPECT_THAT(printed_, ElementsAre("out\n", "unfinished"));
  EXPECT_THAT(complained_, ElementsAre("err\n", ""));
  EXPECT_THAT(closed_, ElementsAre(2, 2));
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(ConductorTest, StopsTheOthersWhenARankFails) {
  Plan({kSleep, "exit 3", kSleep});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[1].ending->code, 3);
  EXPECT_EQ(facts.ranks[1].signal_sent, 0);
  for (int i : {0, 2}) {
    EXPECT_EQ(facts.ranks[i].ending->signal, SIGTERM);
    EXPECT_EQ(facts.ranks[i].signal_sent, SIGTERM);
    EXPECT_GE(facts.ranks[i].ended_at, facts.ranks[1].ended_at);
  }
}

TEST_F(ConductorTest, KeepsTheFirstFailureWhenOthersFollow) {
  Plan({"trap 'exit 9' TERM; : > $DIR/armed; while :; do sleep 0.01; done",
        "while [ ! -e $DIR/armed ]; do sleep 0.01; done; kill -9 $$"});
  const Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 1);
  EXPECT_EQ(facts.ranks[1].ending->signal, SIGKILL);
  EXPECT_EQ(facts.ranks[0].ending->code, 9);
}

TEST_F(ConductorTest, LetsOthersRunOnWhenARankSucceeds) {
  Plan({"while [ ! -e $DIR/go ]; do sleep 0.01; done; echo done", ": > $DIR/go"});
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_EQ(printed_[0], "done\n");
}

TEST_F(ConductorTest, GivesStdinToRankZeroOnly) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]), writer(ends[1]);
  ASSERT_EQ(::write(writer.get(), "hello", 5), 5);
  writer.Reset();
  Plan({"cat", "cat"});
  MustRun(reader.get());
  EXPECT_THAT(printed_, ElementsAre("hello", ""));
}

TEST_F(ConductorTest, LosesNothingOfFastOutput) {
  Plan({"head -c 20000000 /dev/zero | tr '\\0' x", "head -c 20000000 /dev/zero | tr '\\0' y >&2"});
  EXPECT_EQ(MustRun().first_failed, -1);
  const auto is_all = [](const std::string& text, char letter) {
    return text.size() == 20000000 && text.find_first_not_of(letter) == std::string::npos;
  };
  EXPECT_TRUE(is_all(printed_[0], 'x'));
  EXPECT_TRUE(is_all(complained_[1], 'y'));
}

TEST_F(ConductorTest, UndoesTheStartWhenARankCannotBeStarted) {
  Plan({kSleep, kSleep, kSleep});
  plan_.processes[2].argv = {"/nowhere/train"};
  const Result<Facts> facts = Run();
  ASSERT_FALSE(facts);
  EXPECT_THAT(facts.error().text, HasSubstr("rank 2: cannot run '/nowhere/train'"));
  EXPECT_THAT(testing::Marked(mark_), IsEmpty());
}

TEST_F(ConductorTest, NotesWhatTheStoreTells) {
  Plan({"echo ready; exit 0", "exit 0"});
  WhenReady([this] {
    conductor_->Joined(0);
    conductor_->Left(0);
    conductor_->Reported(1, 0, "connection reset by rank 0");
    conductor_->Joined(99);
  });
  const Facts facts = MustRun();
  EXPECT_TRUE(facts.ranks[0].joined);
  EXPECT_TRUE(facts.ranks[0].left);
  EXPECT_FALSE(facts.ranks[1].joined);
  ASSERT_EQ(facts.ranks[1].reports.size(), 1u);
  EXPECT_EQ(facts.ranks[1].reports[0].peer, 0);
}

TEST_F(ConductorTest, EndsRanksThatShouldHaveJoinedLongAgoWhereThatFailsTheJob) {
  Plan({""});
  ScriptedHost host(
      loop_, {Started{{1}}, Looked{false, {"PyTorch"}, false, false}, Looked{false, {"PyTorch"}, true, true}},
      {Ended{0, kTerminated, SIGTERM}, Gone()});
  Conductor conductor(loop_, signals_, plan_, {&host}, [](const std::string&) {});
  ASSERT_TRUE(conductor.Prepare(0, std::string(64, '0')));
  World world;
  world.tokens.resize(1);
  world.outputs.push_back(std::make_unique<Keeper>(*owned_[0]));
  world.lone_worlds = LoneWorldsPolicy::kFail;
  const Result<Facts> facts = conductor.Run(std::move(world));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->first_failed, -1);
  ASSERT_TRUE(facts->lone_worlds);
  EXPECT_THAT(facts->lone_worlds->what, HasSubstr("PyTorch"));
}

TEST_F(ConductorTest, RunsAsManyGenerationsAsItIsAsked) {
  Plan({"exit 3"});
  EXPECT_EQ(MustRun().first_failed, 0);
  ASSERT_TRUE(conductor_->Prepare(1, std::string(64, '1')));
  World world;
  world.tokens.resize(1);
  world.outputs.push_back(std::make_unique<Keeper>(*owned_[0]));
  const Result<Facts> facts = conductor_->Run(std::move(world));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->generation, 1u);
  EXPECT_EQ(facts->ranks[0].ending->code, 3);
}

TEST_F(ConductorTest, EndsAWaitWhenTheUserDoes) {
  Plan({"exit 3"});
  MustRun();
  EXPECT_TRUE(conductor_->Wait(std::chrono::milliseconds(1)));
  Send(SIGINT);
  EXPECT_FALSE(conductor_->Wait(std::chrono::hours(1)));
  EXPECT_EQ(conductor_->interrupted(), SIGINT);
}

TEST_F(ConductorTest, ReplacesVariablesOfItsOwnEnvironment) {
  ::setenv("DTRUN_TEST_COLOUR", "red", 1);
  Plan({"env | grep -c ^DTRUN_TEST_COLOUR; echo $DTRUN_TEST_COLOUR", "echo $DTRUN_TEST_COLOUR"});
  plan_.processes[0].env["DTRUN_TEST_COLOUR"] = "blue";
  MustRun();
  ::unsetenv("DTRUN_TEST_COLOUR");
  EXPECT_THAT(printed_, ElementsAre("1\nblue\n", "red\n"));
}

}  // namespace
}  // namespace dtrun::agent

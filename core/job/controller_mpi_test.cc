#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/job/controller.h"
#include "core/job/testing_controller.h"
#include "core/verdict/verdict.h"

namespace dtrun::job {
namespace {

using testing::ControllerTest;
using ::testing::ElementsAre;
using testing::Keeper;
using testing::kSleep;
using testing::kTerminated;
using testing::ScriptedHost;

// Ranks that speak PMI-1 in shell: `say REQUEST` waits for its answer.
constexpr char kSay[] = "say() { printf '%s\\n' \"$1\" >&3; read -r answer <&3; }; ";
constexpr char kInit[] = "say 'cmd=init pmi_version=1 pmi_subversion=1'; ";

TEST_F(ControllerTest, ServesMpiLibrariesFromInitToFinalize) {
  const std::string whole =
      std::string(kSay) + kInit +
      "say \"cmd=put kvsname=x key=k$DTRUN_RANK value=v$DTRUN_RANK\"; say cmd=barrier_in; "
      "say \"cmd=get kvsname=x key=k$((1 - DTRUN_RANK))\"; echo $answer; say cmd=finalize";
  Plan({whole, whole});
  plan_.pmi = pmi::Kind::kPmi1;
  EXPECT_EQ(MustRun().first_failed, -1);
  EXPECT_THAT(printed_, ElementsAre("cmd=get_result rc=0 msg=success value=v1\n",
                                    "cmd=get_result rc=0 msg=success value=v0\n"));
}

TEST_F(ControllerTest, FailsARankThatLeavesMpiWithoutTheOthers) {
  // The others call MPI_Init before it has left, and after.
  for (const std::string wait : {"while [ ! -e $DIR/came ]; do sleep 0.01; done", ":"}) {
    Plan(
        {kSay + (wait == ":" ? std::string("sleep 0.1; ") : "") + kInit + ": > $DIR/came; say cmd=barrier_in",
         wait});
    plan_.pmi = pmi::Kind::kPmi1;
    const verdict::Facts facts = MustRun();
    EXPECT_EQ(facts.first_failed, 1);
    EXPECT_EQ(facts.ranks[1].ending->early_exit, process::EarlyExit::kBeforeInit);
    EXPECT_FALSE(facts.ranks[0].ending->early_exit == process::EarlyExit::kBeforeFinalize);
    owned_.clear();
  }
}

TEST_F(ControllerTest, FailsARankThatDoesNotFinalizeMpi) {
  Plan({std::string(kSay) + kInit, kSleep});
  plan_.pmi = pmi::Kind::kPmi1;
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 0);
  EXPECT_EQ(facts.ranks[0].ending->early_exit, process::EarlyExit::kBeforeFinalize);
}

TEST_F(ControllerTest, EndsARankThatWaitsAfterMpiAbort) {
  Plan({kSay + std::string(kInit) + "say 'cmd=abort exitcode=7'; exit 3", kSleep});
  plan_.pmi = pmi::Kind::kPmi1;
  const verdict::Facts facts = MustRun();
  EXPECT_EQ(facts.first_failed, 0);
  ASSERT_TRUE(facts.ranks[0].abort);
  EXPECT_EQ(facts.ranks[0].abort->code, 7);
  EXPECT_EQ(facts.ranks[0].ending->signal, SIGTERM);
}

// Runs an mpirun with ranks on two hosts; the second host reports late.
Result<verdict::Facts> RunMpirun(boost::asio::io_context& loop, process::UserSignals& signals,
                                 plan::Plan plan,
                                 std::vector<std::unique_ptr<process::testing::MemoryOutput>>& outputs,
                                 const protocol::Event& first, const protocol::Event& then) {
  plan.hosts.push_back({"node1", 1, 1});
  plan.processes[1].host = 1;
  for (plan::Process& process : plan.processes) process.env["DTRUN_RANK_OUTPUTS"] = "1";
  const bool ended = std::holds_alternative<protocol::Ended>(first);
  const protocol::Event end = protocol::Ended{0, kTerminated, SIGTERM};
  ScriptedHost root(
      loop,
      ended ? std::vector<protocol::Event>{protocol::Started{{1}}, first, protocol::Gone()}
            : std::vector{protocol::Event(protocol::Started{{1}}), first},
      ended ? std::vector<protocol::Event>() : std::vector{end, protocol::Event(protocol::Gone())});
  ScriptedHost other(loop, {protocol::Started{{2}}},
                     {then, protocol::Ended{1, kTerminated, SIGTERM}, protocol::Gone()});
  verdict::EventLog log;
  Controller controller(
      loop, signals, plan, {&root, &other}, [](const std::string&) {}, log);
  if (auto prepared = controller.Prepare(0, std::string(64, '0')); !prepared) return prepared.error();
  World world;
  world.tokens.resize(2);
  world.mpirun_ends_within = std::chrono::milliseconds(1);
  for (auto& output : outputs) world.outputs.push_back(std::make_unique<Keeper>(*output));
  if (const Status ran = controller.Run(std::move(world)); !ran) return ran.error();
  return log.facts();
}

TEST_F(ControllerTest, BlamesTheRankWhoseEndMadeAnMpirunEndItselfOrOthers) {
  Plan({"", ""});
  const protocol::Event late = protocol::RankEnded{1, 4242, {7, 0}};
  for (const protocol::Event& first : {protocol::Event(protocol::Ended{0, {7, 0}}),
                                       protocol::Event(protocol::RankEnded{0, 4241, kTerminated})}) {
    const Result<verdict::Facts> facts = RunMpirun(loop_, signals_, plan_, owned_, first, late);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->first_failed, 1);
    ASSERT_TRUE(facts->ranks[1].failed);
    EXPECT_EQ(facts->ranks[1].failed->pid, 4242);
    EXPECT_EQ(facts->ranks[1].ending->code, 7);
    EXPECT_EQ(facts->ranks[1].signal_sent, 0);
  }
}

TEST_F(ControllerTest, BlamesNoRankThatFailedAfterwards) {
  Plan({"", ""});
  const protocol::Event killed = protocol::Ended{0, {0, SIGKILL}};  // the mpirun itself
  const protocol::Event first = protocol::RankEnded{0, 4241, {3, 0}};
  const protocol::Event late = protocol::RankEnded{1, 4242, {7, 0}};
  for (const auto& [before, then] : {std::pair(first, late),
                                     {killed, late},
                                     {first, protocol::Event(protocol::RankEnded{1, 4242, kTerminated})}}) {
    const Result<verdict::Facts> facts = RunMpirun(loop_, signals_, plan_, owned_, before, then);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->first_failed, 0);
    EXPECT_FALSE(facts->ranks[1].failed);
  }
}

}  // namespace
}  // namespace dtrun::job

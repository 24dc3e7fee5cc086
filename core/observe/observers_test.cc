// Observers of calls, joining, locks and MPI: what each finds in events and looks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/observe/observer.h"
#include "core/verdict/story.h"

namespace dtrun::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Then = Finding::Then;

// A generation of two ranks on two hosts, with the facts that a test records.
class ObserverTest : public ::testing::Test {
 protected:
  ObserverTest() {
    for (const char* const name : {"node0", "node1"}) plan_.hosts.emplace_back().name = name;
    plan_.processes.resize(2);
    fact::Began began;
    for (int rank = 0; rank < 2; ++rank)
      began.processes.push_back({rank, 1, "node" + std::to_string(rank), "p"});
    Record(began);
  }

  void Record(fact::Any fact) { story_.Apply({{}, "root", std::move(fact)}); }
  Finding On(const protocol::Event& event, std::size_t host = 0) {
    return Recorded(observer_->On(Now(), host, event));
  }
  Finding OnLook(const std::vector<verdict::RankDoing>& ranks) {
    return Recorded(observer_->OnLook(Now(), ranks));
  }
  View Now() const { return {plan_, story_.facts(), running_}; }
  const verdict::RankFacts& Rank(int rank) const { return *story_.facts().Find(rank); }

  plan::Plan plan_;
  bool running_ = true;
  std::unique_ptr<Observer> observer_;

 private:
  // As the controller does.
  Finding Recorded(Finding finding) {
    for (const fact::Any& fact : finding.facts) Record(fact);
    return finding;
  }

  verdict::Story story_;
};

verdict::RankDoing WaitsFor(int rank, int holder) {
  verdict::RankDoing doing;
  doing.rank = rank;
  doing.waits_for = holder;
  return doing;
}

TEST_F(ObserverTest, CallsGoToTheOtherHosts) {
  observer_ = WatchCalls();
  const Finding finding = On(protocol::Called{{contract::Window()}});
  ASSERT_TRUE(finding.tell);
  EXPECT_TRUE(std::holds_alternative<protocol::Called>(*finding.tell));
  EXPECT_FALSE(finding.tell_sender);
  EXPECT_THAT(finding.facts, IsEmpty());
}

TEST_F(ObserverTest, ADifferenceOfCallsIsToldOnceAndToAllHosts) {
  observer_ = WatchCalls();
  const protocol::Differed differed{{1, 0, 1, "call 1 on 'world' differs: a, b", true, true}};
  const Finding finding = On(differed);
  ASSERT_TRUE(finding.tell);
  EXPECT_TRUE(finding.tell_sender);
  EXPECT_THAT(finding.line, HasSubstr("call 1 on 'world' differs"));
  EXPECT_EQ(Now().facts.calls_differ, differed.difference.text);
  EXPECT_FALSE(On(differed, 1).tell) << "the other host reports it too";
}

TEST_F(ObserverTest, ADifferenceOfCallsDuringTheEndIsNone) {
  observer_ = WatchCalls();
  running_ = false;
  EXPECT_THAT(On(protocol::Differed{{1, 0, 1, "they differ", true, true}}).facts, IsEmpty());
}

TEST_F(ObserverTest, ARankThatTrainsAloneStopsTheJob) {
  observer_ = WatchJoining(IsolationPolicy::kFail);
  EXPECT_EQ(On(protocol::RendezvousSeen{false, {"PyTorch"}, false, false}).then, Then::kGoOn);
  EXPECT_EQ(On(protocol::RendezvousSeen{false, {"PyTorch"}, true, true}).then, Then::kStop);
  ASSERT_TRUE(Now().facts.isolated_ranks);
  EXPECT_THAT(Now().facts.isolated_ranks->next, HasSubstr("init_process_group"));
}

TEST_F(ObserverTest, ARankThatTrainsAloneIsAWarning) {
  observer_ = WatchJoining(IsolationPolicy::kWarn);
  const Finding finding = On(protocol::RendezvousSeen{false, {"JAX"}, true, true});
  EXPECT_EQ(finding.then, Then::kGoOn);
  EXPECT_THAT(finding.line, HasSubstr("jax.distributed.initialize"));
  EXPECT_THAT(Now().facts.worked_alone, HasSubstr("jax.distributed.initialize"));
  EXPECT_THAT(On(protocol::RendezvousSeen{false, {"JAX"}, true, true}).line, IsEmpty()) << "once";
}

TEST_F(ObserverTest, EachFrameworkHasItsWayToJoin) {
  observer_ = WatchJoining(IsolationPolicy::kFail);
  (void)On(protocol::RendezvousSeen{false, {"PyTorch", "MPICH"}, true, true});
  ASSERT_TRUE(Now().facts.isolated_ranks);
  EXPECT_EQ(
      Now().facts.isolated_ranks->what,
      "the ranks have not joined each other: each has PyTorch and MPICH loaded and works alone (world size "
      "1)");
  EXPECT_EQ(
      Now().facts.isolated_ranks->next,
      "call torch.distributed.init_process_group (Lightning: Trainer(devices=N, strategy=\"ddp\")), or set "
      "job.pmi = \"pmi1\", or launcher.name = \"mpirun\"; job.isolated_ranks = \"allow\" if this is "
      "intended");
}

TEST_F(ObserverTest, RanksThatHaveMetAreNotAlone) {
  observer_ = WatchJoining(IsolationPolicy::kFail);
  (void)On(protocol::RendezvousSeen{true, {"PyTorch"}, false, false, {{1, "RANK", "1", "0"}}});
  EXPECT_TRUE(Now().facts.met);
  EXPECT_THAT(Rank(1).overrides, SizeIs(1));
  EXPECT_EQ(On(protocol::RendezvousSeen{false, {"PyTorch"}, true, true}).then, Then::kGoOn);
}

TEST_F(ObserverTest, RanksThatEndedWithoutBeingSeenAloneAreNotJudged) {
  observer_ = WatchJoining(IsolationPolicy::kFail);
  (void)On(protocol::RendezvousSeen{false, {"PyTorch"}, false, false});
  EXPECT_THAT(observer_->AllEnded(Now()).line, IsEmpty());
}

TEST_F(ObserverTest, ARankThatPrintsNoLongerWaitsForALock) {
  observer_ = WatchLocks();
  (void)OnLook({WaitsFor(1, 0), WaitsFor(0, -1)});
  ASSERT_TRUE(Rank(1).lock);
  EXPECT_EQ(Rank(1).lock->holder, 0);
  (void)On(protocol::Output{1, output::Stream::kOut, "step 1\n"});
  EXPECT_FALSE(Rank(1).lock);
}

TEST_F(ObserverTest, ARankThatPrintsAfterTheEndOfTheHolderHasWaited) {
  observer_ = WatchLocks();
  (void)OnLook({WaitsFor(1, 0)});
  Record(fact::Ended{{0}, {1, 0}, 0});
  EXPECT_THAT(On(protocol::Output{1, output::Stream::kOut, "step 1\n"}).facts, IsEmpty());
  EXPECT_TRUE(Rank(1).lock);
}

TEST_F(ObserverTest, ATracebackCausesALookButNotAtOnceAgain) {
  observer_ = WatchLocks();
  const protocol::Output error{0, output::Stream::kErr, "Traceback (most recent call last):\n"};
  EXPECT_EQ(On(error).then, Then::kLook);
  EXPECT_TRUE(Rank(0).erred_at);
  EXPECT_EQ(On(error).then, Then::kGoOn);
  EXPECT_THAT(On(protocol::Output{0, output::Stream::kOut, error.bytes}).facts, IsEmpty()) << "not an error";
}

TEST_F(ObserverTest, MpiAbortFailsItsRank) {
  observer_ = WatchMpi({});
  const Finding finding = On(protocol::MpiAborted{1, 7, "no", false});
  EXPECT_EQ(finding.then, Then::kFailed);
  EXPECT_EQ(finding.rank, 1);
  EXPECT_EQ(Rank(1).abort->code, 7);
}

TEST_F(ObserverTest, ARankThatExitedBeforeOthersCalledMpiInitWasNeeded) {
  observer_ = WatchMpi({});
  Record(fact::Ended{{0}, {0, 0}, 0});
  const Finding finding = On(protocol::MpiStarted{1}, 1);
  EXPECT_EQ(finding.then, Then::kFailed);
  EXPECT_EQ(finding.rank, 0);
  EXPECT_EQ(Rank(0).ending->early_exit, process::EarlyExit::kBeforeInit);
  EXPECT_EQ(EarlyExitOf(Now().facts, Rank(1)), process::EarlyExit::kBeforeFinalize);
  (void)On(protocol::MpiFinished{1}, 1);
  EXPECT_EQ(EarlyExitOf(Now().facts, Rank(1)), process::EarlyExit::kNone);
}

TEST_F(ObserverTest, ALostMpiServerStopsAJobThatNeedsIt) {
  observer_ = WatchMpi({});
  const Finding before = On(protocol::MpiServerLost{"died"}, 1);
  EXPECT_EQ(before.then, Then::kGoOn);
  EXPECT_THAT(before.line, HasSubstr("host node1"));
  (void)On(protocol::MpiStarted{1}, 1);
  EXPECT_EQ(On(protocol::MpiServerLost{"died"}, 1).then, Then::kStop);
  EXPECT_THAT(Now().facts.mpi_server_loss->needed, ::testing::ElementsAre(1));
}

TEST_F(ObserverTest, ARankBelowAnMpirunFailsItsProcess) {
  observer_ = WatchMpi({});
  EXPECT_EQ(On(protocol::RankEnded{1, 77, {0, 0}}).then, Then::kGoOn);
  EXPECT_EQ(On(protocol::RankEnded{1, 77, {3, 0}}).then, Then::kFailed);
  EXPECT_EQ(Rank(1).failed->pid, 77);
}

TEST_F(ObserverTest, ARankBelowAnMpirunReportedLateFailedFirst) {
  observer_ = WatchMpi({});
  Record(fact::InnerFailed{{{0}, {0, SIGTERM}, 0}, 76});
  Record(fact::FailedFirst{{0}});
  running_ = false;
  EXPECT_THAT(On(protocol::RankEnded{1, 77, {0, SIGTERM}}).facts, IsEmpty()) << "it was asked to end";
  (void)On(protocol::RankEnded{1, 77, {3, 0}});
  EXPECT_EQ(Now().facts.first_failed, 1);
}

}  // namespace
}  // namespace dtrun::observe

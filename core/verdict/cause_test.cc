#include "core/verdict/cause.h"

#include <gtest/gtest.h>

#include <csignal>

#include "core/base/error_id.h"

namespace dtrun::verdict {
namespace {

using std::chrono::milliseconds;

// Ranks on two hosts, all joined. Each test sets how they ended.
class CauseTest : public ::testing::Test {
 protected:
  CauseTest() {
    for (int i = 0; i < 4; ++i) {
      RankFacts rank;
      rank.rank = i;
      rank.host = i < 2 ? "node0" : "node1";
      rank.joined = true;
      facts_.ranks.push_back(rank);
    }
  }
  void End(int rank, process::Ending ending, int at_ms, int signal_sent = 0) {
    RankFacts& facts = facts_.ranks[static_cast<std::size_t>(rank)];
    facts.ending = ending;
    facts.ended_at = milliseconds(at_ms);
    facts.signal_sent = signal_sent;
    if (facts_.first_failed < 0 && ending.failed()) facts_.first_failed = rank;
  }
  void Blame(int rank, int peer) {
    facts_.ranks[static_cast<std::size_t>(rank)].reports.push_back({peer, "connection lost"});
  }
  void ExpectRank(std::size_t index, ExitClass exit_class) {
    const Cause cause = FindCause(facts_);
    EXPECT_EQ(cause.kind, Cause::Kind::kRank);
    EXPECT_EQ(cause.index, index);
    EXPECT_EQ(ClassName(cause.exit_class), ClassName(exit_class));
  }

  Facts facts_;
};

constexpr process::Ending kOne{1, 0, false};
constexpr process::Ending kKilled{0, SIGKILL, false};
constexpr process::Ending kStopped{0, SIGTERM, false};

TEST_F(CauseTest, IsTheRankSeenFirstWhenNobodyBlamesAnybody) {
  End(2, {7, 0, false}, 10);
  End(0, kOne, 11);
  ExpectRank(2, ExitClass::kUserError);
}

TEST_F(CauseTest, IsTheRankThatStoodStillWhenOthersWaitedInVain) {
  End(0, kOne, 10);
  End(2, {0, SIGTERM, false, false, SIGSTOP}, 20, SIGTERM);
  Blame(0, 1);  // which ended on dtrun's signal
  End(1, kStopped, 20, SIGTERM);
  ExpectRank(2, ExitClass::kSignal);
}

TEST_F(CauseTest, IsNotARankThatStoodStillWhenAnotherFailedForItself) {
  End(0, {7, 0, false}, 10);
  End(2, {0, SIGTERM, false, false, SIGSTOP}, 20, SIGTERM);
  ExpectRank(0, ExitClass::kUserError);
}

TEST_F(CauseTest, FollowsBlameToTheRankThatFailedByItself) {
  End(0, kOne, 10);
  End(1, kOne, 11);
  End(3, kKilled, 12);  // on another host: reported last
  Blame(0, 1);
  Blame(1, 3);
  ExpectRank(3, ExitClass::kSignal);
}

TEST_F(CauseTest, DoesNotBlameARankThatDtrunStopped) {
  End(0, kOne, 10);
  End(1, kStopped, 20, SIGTERM);
  Blame(0, 1);
  ExpectRank(0, ExitClass::kNetwork);
}

TEST_F(CauseTest, PrefersARankThatBlamesNobodyToACircleOfVictims) {
  End(0, kOne, 10);
  End(1, kOne, 11);
  End(2, {0, SIGSEGV, true}, 12);
  Blame(0, 1);
  Blame(1, 0);
  ExpectRank(2, ExitClass::kSignal);
}

TEST_F(CauseTest, TakesAProcessOfSeveralRanksForOne) {
  facts_.ranks.erase(facts_.ranks.begin() + 3);
  facts_.ranks.erase(facts_.ranks.begin() + 1);
  facts_.ranks[0].count = facts_.ranks[1].count = 2;
  End(1, kOne, 10);  // ranks 2 and 3, of which 2 lost 1
  End(0, kOne, 11);  // ranks 0 and 1, of which 0 lost 1
  facts_.ranks[1].reports = {{1, "connection lost"}};
  facts_.ranks[0].reports = {{1, "connection lost"}};
  ExpectRank(0, ExitClass::kUserError);
}

TEST_F(CauseTest, IsTheLostHostWhenARankLostItsPeerThere) {
  End(0, kOne, 10);
  Blame(0, 3);
  facts_.losses = {{"node1", "nothing heard", false, milliseconds(900)}};
  const Cause cause = FindCause(facts_);
  EXPECT_EQ(cause.kind, Cause::Kind::kHost);
  EXPECT_EQ(cause.exit_class, ExitClass::kNetwork);
}

TEST_F(CauseTest, IsDtrunWhenAnAgentDied) {
  facts_.losses = {{"node1", "its agent was killed", true, milliseconds(9)}};
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kLauncher);
}

TEST_F(CauseTest, TellsAPeerThatNeverCameFromOneThatWasLost) {
  facts_.ranks[1].joined = false;
  End(0, kOne, 10);
  End(1, kStopped, 20, SIGTERM);
  Blame(0, 1);
  ExpectRank(0, ExitClass::kRendezvous);
}

TEST_F(CauseTest, TakesAnUncaughtErrorOfThePeerForANetworkFailure) {
  End(0, {0, SIGABRT, true}, 10);
  Blame(0, 1);
  ExpectRank(0, ExitClass::kNetwork);
}

TEST_F(CauseTest, IsAPluginThatCrashedHungOrMissedADeadline) {
  for (const ErrorId id : {ErrorId::kPluginFault, ErrorId::kPluginStuck, ErrorId::kOverrun}) {
    facts_.ranks[1].reports = {{-1, "said", {}, id, {{"plugin", "backend 'demo'"}}}};
    End(1, id == ErrorId::kPluginFault ? process::Ending{0, SIGSEGV, true} : kOne, 10);
    ExpectRank(1, ExitClass::kPlugin);
    EXPECT_EQ(PluginAtFault(facts_.ranks[1]), "backend 'demo'");
  }
  facts_.ranks[3].doing.emplace().stand = stacks::Stand::kElsewhere;
  facts_.ranks[3].doing->phrase = "in time.sleep at train.py:40";
  ExpectRank(3, ExitClass::kHang);  // for which the backend had waited
}

TEST_F(CauseTest, IsAPluginThatKeepsOneRankWhileOthersTimeOut) {
  End(0, kOne, 10);
  End(1, kStopped, 20, SIGTERM);
  facts_.ranks[0].reports = {{1, "rank 1 did not come", {}, ErrorId::kTimeout}};
  ExpectRank(0, ExitClass::kNetwork);
  facts_.ranks[1].doing.emplace().plugin = "backend 'demo', in an operation";
  ExpectRank(1, ExitClass::kPlugin);
  EXPECT_EQ(FindCause(facts_).suspicion.kind, Suspicion::Kind::kStuck);
  EXPECT_EQ(PluginAtFault(facts_.ranks[1]), "backend 'demo'");
}

TEST_F(CauseTest, KnowsMemorySignalsAndPreemption) {
  End(1, {0, SIGKILL, false, true}, 10);
  ExpectRank(1, ExitClass::kOutOfMemory);
  facts_ = Facts();
  EXPECT_EQ(FindCause(facts_).kind, Cause::Kind::kNone);
  facts_.interrupt = SIGTERM;
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kPreemption);
  facts_.interrupt = SIGINT;
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kSignal);
  facts_.guard_died = true;
  EXPECT_EQ(FindCause(facts_).exit_class, ExitClass::kLauncher);
}

}  // namespace
}  // namespace dtrun::verdict

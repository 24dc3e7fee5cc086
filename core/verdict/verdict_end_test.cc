#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json.h"
#include "core/verdict/testing.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using testing::kOk;
using testing::kTerm;
using testing::Rank;
using testing::RunOf;

TEST(VerdictOfAnEnd, MapsEndingsToExitCodes) {
  auto code = [](process::Ending ending) { return ExitCode(RunOf({Rank(0, ending, milliseconds(1))}, 0)); };
  EXPECT_EQ(code({3, 0, false}), 3);
  EXPECT_EQ(code({255, 0, false}), 255);
  EXPECT_EQ(code({0, SIGSEGV, true}), 139);
  Facts facts = RunOf({Rank(0, kOk, milliseconds(1))}, -1);
  facts.interrupt = SIGINT;
  EXPECT_EQ(ExitCode(facts), 130);
  facts.interrupt = SIGTERM;
  EXPECT_EQ(ExitCode(facts), 143);
  facts.guard_died = true;
  EXPECT_EQ(ExitCode(facts), 137);
}

TEST(VerdictOfAnEnd, NamesTheInterruptAndHowTheRanksTookIt) {
  Facts facts =
      RunOf({Rank(0, {0, SIGINT, false}, milliseconds(3200), SIGINT),
             Rank(1, {0, SIGINT, false}, milliseconds(3200), SIGINT), Rank(2, kOk, milliseconds(3200))},
            -1);
  facts.interrupt = SIGINT;
  EXPECT_EQ(VerdictText(facts),
            "dtrun: job 'quickstart' was interrupted by SIGINT after 3.3 s\n"
            "  ranks 0, 1 were killed by signal 2 (SIGINT); rank 2 exited with code 0\n"
            "  logs: /runs/1\n");
}

TEST(VerdictOfAnEnd, TellsWhichRanksWaitedWhenTheJobWasInterrupted) {
  Facts facts =
      RunOf({Rank(0, kTerm, milliseconds(3200), SIGTERM), Rank(1, kTerm, milliseconds(3200), SIGTERM),
             Rank(2, kTerm, milliseconds(3200), SIGTERM)},
            -1);
  facts.interrupt = SIGTERM;
  const auto does = [&](std::size_t rank, stacks::Stand stand, const std::string& phrase) {
    facts.ranks[rank].doing = RankDoing{};
    facts.ranks[rank].doing->rank = static_cast<int>(rank);
    facts.ranks[rank].doing->stand = stand;
    facts.ranks[rank].doing->phrase = phrase;
  };
  for (const std::size_t rank : {0, 2}) does(rank, stacks::Stand::kWaits, "in all_reduce at t.py:8");
  does(1, stacks::Stand::kElsewhere, "in time.sleep at t.py:6");
  EXPECT_THAT(
      VerdictText(facts),
      HasSubstr("  at that moment: ranks 0, 2 in all_reduce at t.py:8; rank 1 in time.sleep at t.py:6; "
                "ranks 0, 2 wait for rank 1\n"));
  does(1, stacks::Stand::kWaits, "in broadcast at t.py:9");
  EXPECT_THAT(VerdictText(facts), Not(HasSubstr("none can complete"))) << "of ranks that may go on";
}

TEST(VerdictOfAnEnd, PrefersAFailureToALaterInterrupt) {
  Facts facts = RunOf({Rank(0, {3, 0, false}, milliseconds(1))}, 0);
  facts.guard_died = true;
  EXPECT_EQ(ExitCode(facts), 3);
  EXPECT_THAT(VerdictText(facts), StartsWith("dtrun: job 'quickstart' failed"));
}

TEST(VerdictOfAnEnd, NamesTheHostThatWasLostAndItsRanks) {
  Facts facts = RunOf({Rank(0, kTerm, milliseconds(2100), SIGTERM), Rank(1, kOk, milliseconds(0))}, -1);
  facts.ranks[1].host = "node1";
  facts.ranks[1].ending.reset();
  facts.losses = {{"node1", "nothing was heard for 10s", false, milliseconds(2000)}};
  EXPECT_EQ(ExitCode(facts), 1);
  EXPECT_EQ(VerdictText(facts),
            "dtrun: job 'quickstart' failed after 2.0 s: host node1 was lost: nothing was heard for 10s\n"
            "  because of it: rank 0 was stopped by dtrun; rank 1 was lost with its host\n"
            "  next: check that node1 is up and reachable\n"
            "  class: network\n"
            "  logs: /runs/1\n");
  EXPECT_EQ(ParseJson(VerdictJson({facts}))["lost_host"], "node1");
}

TEST(VerdictOfAnEnd, LooksAtTheRootsNetworkWhenAllOthersAreLost) {
  Facts facts = RunOf({Rank(0, kTerm, milliseconds(2100), SIGTERM), Rank(1, kOk, {}), Rank(2, kOk, {})}, -1);
  for (const std::size_t i : {1, 2}) {
    facts.ranks[i].host = "node" + std::to_string(i);
    facts.ranks[i].ending.reset();
    facts.losses.push_back({facts.ranks[i].host, "nothing was heard for 10s", false, milliseconds(2000)});
  }
  EXPECT_THAT(VerdictText(facts), HasSubstr("next: all other hosts were lost together"));
  facts.losses[1].agent_died = true;
  EXPECT_THAT(VerdictText(facts), HasSubstr("next: check that node1 is up"));
}

}  // namespace
}  // namespace dtrun::verdict

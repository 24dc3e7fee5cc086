#include "core/job/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/base/error_id.h"

namespace dtrun::job {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const RestartPolicy kPolicy{3, seconds(5), {verdict::ExitClass::kUserError, verdict::ExitClass::kSignal}};

verdict::Facts Failed(std::uint64_t generation, process::Ending ending, milliseconds at) {
  verdict::Facts facts;
  facts.generation = generation;
  verdict::RankFacts rank;
  rank.ending = ending;
  rank.ended_at = at;
  facts.ranks = {rank};
  facts.first_failed = 0;
  return facts;
}

constexpr process::Ending kOne{1, 0, false};
constexpr process::Ending kKilled{0, SIGKILL, false};

// All generations so far have failed.
RestartDecision Decide(const RestartPolicy& policy, const verdict::Facts& facts) {
  return DecideRestart(policy, static_cast<int>(facts.generation), facts);
}

TEST(Restart, SaysNothingWhenNobodyAskedForIt) {
  const auto decision = Decide({}, Failed(0, kKilled, seconds(5)));
  EXPECT_FALSE(decision.restart);
  EXPECT_THAT(decision.why, IsEmpty());
}

TEST(Restart, IsNotForAJobWhoseTimeIsUp) {
  verdict::Facts facts = Failed(0, kKilled, seconds(5));
  facts.time_limit = "2h";
  const auto decision = Decide(kPolicy, facts);
  EXPECT_FALSE(decision.restart);
  EXPECT_THAT(decision.why, IsEmpty());
}

TEST(Restart, ComesAtOnceFirstAndThenEverLater) {
  EXPECT_EQ(Decide(kPolicy, Failed(0, kKilled, seconds(5))).wait, seconds(0));
  EXPECT_EQ(Decide(kPolicy, Failed(1, kKilled, seconds(5))).wait, seconds(5));
  EXPECT_EQ(Decide(kPolicy, Failed(2, kKilled, seconds(5))).wait, seconds(10));
  EXPECT_THAT(Decide(kPolicy, Failed(2, kKilled, seconds(5))).why, HasSubstr("restart 3 of 3"));
  RestartPolicy many = kPolicy;
  many.max = 1000;
  EXPECT_EQ(Decide(many, Failed(900, kKilled, seconds(5))).wait, seconds(60));
}

TEST(Restart, EndsWhenTheRestartsAreUsedUp) {
  const auto decision = Decide(kPolicy, Failed(3, kKilled, seconds(5)));
  EXPECT_FALSE(decision.restart);
  EXPECT_THAT(decision.why, HasSubstr("restart.max = 3"));
}

TEST(Restart, IsForListedCausesOnly) {
  verdict::Facts facts = Failed(0, {0, SIGKILL, false, true}, seconds(5));
  EXPECT_THAT(Decide(kPolicy, facts).why, HasSubstr("'out-of-memory'"));
}

TEST(Restart, IsForAProgramThatFailsAtOnceToo) {
  EXPECT_TRUE(Decide(kPolicy, Failed(0, kOne, milliseconds(20))).restart);
}

TEST(Restart, IsForALostHostWhereItIsForTheNetwork) {
  verdict::Facts facts;
  facts.losses = {{"node1", "killed", true, {}}};
  EXPECT_THAT(Decide(kPolicy, facts).why, HasSubstr("'network'"));
  RestartPolicy policy = kPolicy;
  policy.on.insert(verdict::ExitClass::kNetwork);
  EXPECT_TRUE(Decide(policy, facts).restart);
}

TEST(Restart, IsInVainOnceAPluginWasReplaced) {
  verdict::Facts facts = Failed(0, kOne, seconds(5));
  EXPECT_TRUE(Decide(kPolicy, facts).restart);
  facts.ranks[0].reports = {{-1, "another file", {}, ErrorId::kPluginReplaced}};
  EXPECT_FALSE(Decide(kPolicy, facts).restart);
  EXPECT_THAT(Decide(kPolicy, facts).why, HasSubstr("a plugin was replaced"));
}

TEST(Restart, OfAStalledJobIsForThePolicyThatAsksForIt) {
  verdict::Facts facts;
  facts.stalled = "10 min 0 s";
  RestartPolicy policy{2, seconds(5), {verdict::ExitClass::kHang}};
  EXPECT_THAT(Decide(policy, facts).why, HasSubstr("watch.on_stall"));
  policy.after_stall = true;
  EXPECT_TRUE(Decide(policy, facts).restart);
  EXPECT_THAT(DecideRestart(policy, 2, facts).why, HasSubstr("restart.max = 2 is used up"));
  policy.on = {verdict::ExitClass::kNetwork};
  EXPECT_THAT(Decide(policy, facts).why, HasSubstr("'hang'"));
  policy.max = 0;
  EXPECT_THAT(Decide(policy, facts).why, HasSubstr("restart.max is 0"));
  policy.after_stall = false;
  EXPECT_THAT(Decide(policy, facts).why, IsEmpty());
}

TEST(Restart, NeedsNoInterrupt) {
  verdict::Facts facts = Failed(0, kKilled, seconds(5));
  facts.interrupt = SIGINT;
  EXPECT_FALSE(Decide(kPolicy, facts).restart);
}

}  // namespace
}  // namespace dtrun::job

// Verdicts as JSON, and texts of ranks and durations in both forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "core/base/json.h"
#include "core/verdict/testing.h"
#include "core/verdict/verdict.h"

namespace dtrun::verdict {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::kOk;
using testing::kTerm;
using testing::Rank;
using testing::RunOf;

TEST(VerdictJson, WritesTheSameForPrograms) {
  Facts facts =
      RunOf({Rank(0, kTerm, milliseconds(20), SIGTERM), Rank(1, {3, 0, false}, milliseconds(10))}, 1);
  facts.ranks[1].tail = {"not \xff utf-8"};
  const auto json = ParseJson(VerdictJson(facts));
  EXPECT_EQ(json["result"], "failed");
  EXPECT_EQ(json["exit_code"], 3);
  EXPECT_EQ(json["first_failed_rank"], 1);
  EXPECT_EQ(json["ranks"][0]["ending"]["signal"], "SIGTERM");
  EXPECT_EQ(json["ranks"][0]["ending"]["code"], nullptr);
  EXPECT_EQ(json["ranks"][0]["stopped_with"], "SIGTERM");
  EXPECT_EQ(json["ranks"][1]["ending"]["code"], 3);
  EXPECT_EQ(json["ranks"][1]["pid"], 4243);
}

TEST(VerdictJson, ListsEveryGeneration) {
  const Facts failed = RunOf({Rank(0, {3, 0, false}, milliseconds(10))}, 0);
  Facts good = RunOf({Rank(0, kOk, milliseconds(10))}, -1);
  good.generation = 1;
  good.elapsed = milliseconds(7700);
  EXPECT_THAT(VerdictText(good), HasSubstr("7.7 s, after 1 restart, logs in"));
  const auto json = ParseJson(VerdictJson(good, {{Summarise(failed)}, {}, 0}));
  EXPECT_EQ(json["job_seconds"], 7.7);
  EXPECT_EQ(json["result"], "succeeded");
  EXPECT_EQ(json["exit_class"], nullptr);
  ASSERT_EQ(json["generations"].size(), 2u);
  EXPECT_EQ(json["generations"][0]["exit_class"], "user-error");
  EXPECT_EQ(json["generations"][1]["generation"], 1);
}

TEST(Verdict, NamesTheTimeLimitThatTheJobReached) {
  Facts facts = RunOf({Rank(0, kTerm, milliseconds(7200), SIGTERM), Rank(1, kOk, milliseconds(7200))}, -1);
  facts.time_limit = "2h";
  facts.stacks = true;
  EXPECT_EQ(ExitCode(facts), 124);
  EXPECT_THAT(VerdictText(facts), HasSubstr("dtrun: job 'quickstart' failed after "));
  EXPECT_THAT(VerdictText(facts), HasSubstr(": the job reached job.time_limit = 2h\n"));
  EXPECT_THAT(VerdictText(facts), HasSubstr("  stacks: /runs/1/stacks.txt\n"));
  EXPECT_THAT(VerdictText(facts), HasSubstr("  class: time-limit\n"));
  EXPECT_THAT(VerdictJson(facts), HasSubstr("\"exit_class\": \"time-limit\""));
  facts.stalled = "10 min";  // in an earlier generation
  EXPECT_EQ(ExitCode(facts), 124);
  facts.first_failed = 0;
  facts.ranks[0].ending = process::Ending{3, 0};
  facts.ranks[0].signal_sent = 0;
  EXPECT_EQ(ExitCode(facts), 3);  // before the limit
}

TEST(VerdictJson, WritesWhyNothingRan) {
  const auto json = ParseJson(NotStartedJson("quickstart", {DTRUN_BUSY, "port 1 is in use"}));
  EXPECT_EQ(json["result"], "not started");
  EXPECT_EQ(json["exit_class"], "user-error");
  EXPECT_EQ(json["exit_code"], 2);
  EXPECT_EQ(json["error"], "port 1 is in use");
  EXPECT_EQ(ParseJson(NotStartedJson("job", {DTRUN_TIMEOUT, "late"}))["exit_class"], "rendezvous");
  EXPECT_EQ(ParseJson(NotStartedJson("job", {DTRUN_REMOTE_FAILURE, "lost"}))["exit_class"], "network");
}

TEST(FoldRanks, MakesRangesOfThreeAndMore) {
  EXPECT_EQ(FoldRanks({3}), "rank 3");
  EXPECT_EQ(FoldRanks({3, 4}), "ranks 3, 4");
  EXPECT_EQ(FoldRanks({2, 3, 4, 5, 7}), "ranks 2-5, 7");
  EXPECT_EQ(FoldRanks({0, 2, 4, 5}), "ranks 0, 2, 4, 5");
}

TEST(FormatElapsed, FitsTheUnitToTheLength) {
  EXPECT_EQ(FormatElapsed(std::chrono::microseconds(400)), "less than 1 ms");
  EXPECT_EQ(FormatElapsed(milliseconds(4)), "4 ms");
  EXPECT_EQ(FormatElapsed(milliseconds(12)), "0.01 s");
  EXPECT_EQ(FormatElapsed(milliseconds(3200)), "3.2 s");
  EXPECT_EQ(FormatElapsed(milliseconds(59990)), "1 min 0 s");
  EXPECT_EQ(FormatElapsed(std::chrono::seconds(125)), "2 min 5 s");
  EXPECT_EQ(FormatElapsed(std::chrono::minutes(192)), "3 h 12 min");
}

}  // namespace
}  // namespace dtrun::verdict

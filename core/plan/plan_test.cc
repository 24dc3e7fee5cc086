#include "core/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/json.h"

namespace dtrun::plan {
namespace {

using ::testing::HasSubstr;

Plan TwoRanks() {
  Plan plan;
  plan.job = "demo";
  plan.hosts = {Host{"here", 0, 2}};
  plan.launcher = "per-process";
  plan.backend = "gloo";
  for (int rank = 0; rank < 2; ++rank) {
    Process process;
    process.rank = process.local_rank = rank;
    process.argv = {"/bin/echo", "it's", std::string("port=") + kTokenPort};
    process.env = {{"RANK", std::to_string(rank)}, {"MASTER_PORT", kTokenPort}};
    process.cwd = "/tmp";
    plan.processes.push_back(process);
  }
  return plan;
}

TEST(Plan, WorldSizeCountsTheRanksOfAllHosts) { EXPECT_EQ(TwoRanks().world_size(), 2); }

TEST(Plan, ResolveReplacesTokensAndNothingElse) {
  const Plan resolved = Resolve(TwoRanks(), {{kTokenPort, "4711"}});
  EXPECT_EQ(resolved.processes[1].argv[2], "port=4711");
  EXPECT_EQ(resolved.processes[1].env.at("MASTER_PORT"), "4711");
  EXPECT_EQ(resolved.processes[1].env.at("RANK"), "1");
  EXPECT_EQ(resolved.processes[1].argv[1], "it's");
}

TEST(Plan, ResolvePutsTheJobKeyIntoNoArgument) {
  Plan plan = TwoRanks();
  plan.processes[0].argv.push_back(std::string("key=") + kTokenJobKey);
  plan.processes[0].env["DTRUN_JOB_KEY"] = kTokenJobKey;
  const Plan resolved = Resolve(plan, {{kTokenJobKey, "secret"}});
  EXPECT_EQ(resolved.processes[0].argv.back(), std::string("key=") + kTokenJobKey);
  EXPECT_EQ(resolved.processes[0].env.at("DTRUN_JOB_KEY"), "secret");
}

TEST(Plan, KnowsWhichPortsOfTasksARunHasToHold) {
  Plan plan = TwoRanks();
  EXPECT_TRUE(TaskPortsUsed(plan).empty());
  plan.processes[0].env["TF_CONFIG"] = "[\"127.0.0.1:" + TaskPortToken(1) + "\"]";
  EXPECT_EQ(TaskPortsUsed(plan), std::vector<int>{1});
  plan.processes[1].argv.push_back(TaskPortToken(0) + "," + TaskPortToken(7) + ",⟦port_");
  EXPECT_EQ(TaskPortsUsed(plan), (std::vector<int>{0, 1}));
}

TEST(Plan, TextQuotesArgumentsForTheShell) {
  EXPECT_THAT(ToText(TwoRanks()), HasSubstr("argv   /bin/echo 'it'\\''s' port=⟦master_port⟧\n"));
}

TEST(Plan, TextHasWhatAllProcessesShareOnce) {
  Plan plan = TwoRanks();
  for (Process& process : plan.processes) process.env["SAME"] = "1";
  const std::string text = ToText(plan);
  EXPECT_EQ(text.find("SAME=1"), text.rfind("SAME=1"));
  EXPECT_LT(text.find("SAME=1"), text.find("\nrank 0 on "));
  EXPECT_GT(text.find("RANK=1"), text.find("\nrank 1 on "));
  plan.processes.pop_back();
  EXPECT_GT(ToText(plan).find("SAME=1"), ToText(plan).find("\nrank 0 on "));
}

TEST(Plan, TextOfALargeJobShowsSomeOfItsProcessesAndJsonAll) {
  Plan plan = TwoRanks();
  constexpr int kRanks = 1000;
  plan.hosts[0].local_size = kRanks;
  for (int rank = 2; rank < kRanks; ++rank) {
    plan.processes.push_back(plan.processes[0]);
    plan.processes.back().rank = plan.processes.back().local_rank = rank;
    plan.processes.back().env["RANK"] = std::to_string(rank);
  }
  const std::string text = ToText(plan);
  EXPECT_THAT(text, HasSubstr("\nrank 15 on here"));
  EXPECT_THAT(text,
              HasSubstr("\n... ranks 16 to 998: dtrun plan --json has every process\n\nrank 999 on here"));
  EXPECT_EQ(text.find("\nrank 16 on"), text.npos);
  const Json json = ParseJson(ToJson(plan));
  ASSERT_EQ(json["processes"].size(), static_cast<std::size_t>(kRanks));
  EXPECT_EQ(json["processes"][500]["env"]["RANK"], "500");
  EXPECT_EQ(ToJson(plan), JsonText(json)) << "the pieces are one document";
}

TEST(Plan, JsonHoldsWhatIsStarted) {
  const auto json = ParseJson(ToJson(TwoRanks()));
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_EQ(json["processes"][1]["env"]["RANK"], "1");
  EXPECT_EQ(json["processes"][1]["argv"][0], "/bin/echo");
}

TEST(Plan, TextHasNothingThatATerminalObeys) {
  Plan plan = TwoRanks();
  plan.processes[0].argv.push_back("it's \x1b[31mred\xc2\x9b");
  plan.processes[0].env["BELL"] = "\a";
  const std::string text = ToText(plan);
  EXPECT_THAT(text, HasSubstr(" $'it\\'s \\x1b[31mred\\xc2\\x9b'\n"));
  EXPECT_THAT(text, HasSubstr("BELL=\\u0007\n"));
}

TEST(Plan, JsonSurvivesArgumentsThatAreNotUtf8) {
  Plan plan = TwoRanks();
  plan.processes[0].argv[1] = "\xff";
  EXPECT_TRUE(Json::accept(ToJson(plan)));
}

}  // namespace
}  // namespace dtrun::plan

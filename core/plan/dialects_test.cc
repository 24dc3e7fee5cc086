#include "core/plan/dialects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::plan {
namespace {

using ::testing::HasSubstr;

spec::JobSpec SettingsWith(const std::vector<std::string>& sets) {
  spec::Request request;
  request.sets = sets;
  request.command = {"true"};
  spec::Loaded loaded = spec::Load(request, nullptr);
  EXPECT_EQ(spec::Render(loaded.problems), "");
  return std::move(loaded.spec);
}

Plan TwoHosts() {
  Plan plan;
  plan.job = "demo";
  plan.launcher = "per-process";
  for (int i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i);
    plan.hosts.push_back({"node" + number, 2 * i, 2, 2, "10.0.0." + number});
  }
  return plan;
}

Process RankThree() {
  Process process;
  process.host = 1;
  process.rank = 3;
  process.local_rank = 1;
  return process;
}

TEST(TableOf, TakesHostsAndTokensFromThePlan) {
  const environments::RankTable table = TableOf(TwoHosts());
  EXPECT_EQ(table.world_size(), 4);
  EXPECT_EQ(table.hosts[1].address, "10.0.0.1");
  EXPECT_EQ(table.master_address, "10.0.0.0");
  EXPECT_EQ(table.master_port, kTokenPort);
  EXPECT_EQ(table.task_ports[3], "⟦port_3⟧");
}

TEST(ChooseDialects, RefusesUnknownDialectsAndWrongRolesWithTheirPlace) {
  Plan plan = TwoHosts();
  const Status dialects = ChooseDialects(SettingsWith({"job.dialects=horovd"}), &plan);
  ASSERT_FALSE(dialects.ok());
  EXPECT_THAT(dialects.error().text, HasSubstr("--set job.dialects"));
  EXPECT_THAT(dialects.error().text, HasSubstr("did you mean 'horovod'?"));
  const Status twice = ChooseDialects(SettingsWith({"job.dialects=slurm,slurm"}), &plan);
  ASSERT_FALSE(twice.ok());
  EXPECT_THAT(twice.error().text, HasSubstr("'slurm' is named twice; leave one out"));
  const Status roles = ChooseDialects(SettingsWith({"job.roles=worker=3"}), &plan);
  ASSERT_FALSE(roles.ok());
  EXPECT_THAT(roles.error().text, HasSubstr("roles for 3 ranks, and the job has 4"));
}

TEST(ChooseDialects, KnowsWhoseSuccessIsTheJobs) {
  const auto success = [](std::vector<std::string> sets) {
    Plan plan = TwoHosts();
    const Status chosen = ChooseDialects(SettingsWith(std::move(sets)), &plan);
    return chosen ? fmt::format("{}", fmt::join(plan.success, " ")) : chosen.error().text;
  };
  EXPECT_EQ(success({}), "");
  EXPECT_EQ(success({"job.roles=chief=1,worker=3"}), "") << "the chief is one of the workers";
  EXPECT_EQ(success({"job.roles=chief=1,worker=2,ps=1"}), "chief");
  EXPECT_EQ(success({"job.roles=worker=3,ps=1"}), "worker");
  EXPECT_EQ(success({"job.roles=chief=1,worker=2,ps=1", "job.success=all"}), "");
  EXPECT_EQ(success({"job.roles=chief=1,worker=2,evaluator=1", "job.success=chief,evaluator"}),
            "chief evaluator");
  EXPECT_THAT(success({"job.success=chief"}), HasSubstr("job.success: no rank is 'chief'"));
}

TEST(ChooseDialects, TakesThePortThatProgramsHaveBuiltInUnlessTheUserChose) {
  Plan plan = TwoHosts();
  ASSERT_TRUE(ChooseDialects(SettingsWith({"job.dialects=azureml"}), &plan).ok());
  EXPECT_EQ(plan.master_port, 6105);
  EXPECT_THAT(plan.notes.at(0), HasSubstr("MASTER_PORT=6105"));
  plan = TwoHosts();
  plan.master_port = 7000;
  ASSERT_TRUE(ChooseDialects(SettingsWith({"job.dialects=azureml"}), &plan).ok());
  EXPECT_EQ(plan.master_port, 7000);
}

TEST(DialectVariables, AddsThoseOfEveryDialect) {
  Plan plan = TwoHosts();
  plan.dialects = {"horovod", "openmpi"};
  const auto contract = DialectVariables(plan, TableOf(plan), RankThree(), {{"RANK", "3"}});
  ASSERT_TRUE(contract.ok());
  EXPECT_EQ(contract->set.at("HOROVOD_RANK"), "3");
  EXPECT_EQ(contract->set.at("OMPI_COMM_WORLD_LOCAL_RANK"), "1");
  EXPECT_FALSE(contract->set.contains("RANK"));
}

TEST(DialectVariables, TwoThatAgreeAreNoContradiction) {
  Plan plan = TwoHosts();
  plan.dialects = {"torchrun", "accelerate", "lightning", "deepspeed",
                   "azureml",  "slurm",      "horovod",   "mpich"};
  EXPECT_TRUE(
      DialectVariables(plan, TableOf(plan), RankThree(), {{"RANK", "3"}, {"MASTER_PORT", kTokenPort}}).ok());
}

TEST(DialectVariables, AContradictionNamesBothValuesAndTheirOwners) {
  Plan plan = TwoHosts();
  plan.dialects = {"gcp"};
  const auto launcher = DialectVariables(plan, TableOf(plan), RankThree(), {{"RANK", "3"}});
  ASSERT_FALSE(launcher.ok());
  EXPECT_THAT(launcher.error().text,
              HasSubstr("the per-process launcher sets RANK=3, the gcp dialect sets RANK=1"));
  plan.dialects = {"torchrun", "spark"};
  const auto other = DialectVariables(plan, TableOf(plan), RankThree(), {});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().text,
              HasSubstr("the torchrun dialect sets LOCAL_RANK=1, the spark dialect sets LOCAL_RANK=0"));
}

TEST(DialectVariables, AProcessOfSeveralRanksTakesOnlyThoseThatAllOfThemShare) {
  Plan plan = TwoHosts();
  plan.launcher = "per-node";
  Process both = RankThree();
  both.rank = 2;
  both.local_rank = 0;
  both.rank_count = 2;
  plan.dialects = {"kubeflow-v2"};
  const auto shared = DialectVariables(plan, TableOf(plan), both, {});
  ASSERT_TRUE(shared.ok()) << shared.error().text;
  EXPECT_EQ(shared->set.at("PET_NODE_RANK"), "1");
  plan.dialects = {"horovod"};
  EXPECT_THAT(DialectVariables(plan, TableOf(plan), both, {}).error().text,
              HasSubstr("one process for ranks 2-3"));
}

TEST(DialectVariables, NoDialectsAddNothing) {
  const auto contract = DialectVariables(TwoHosts(), TableOf(TwoHosts()), RankThree(), {{"RANK", "3"}});
  ASSERT_TRUE(contract.ok());
  EXPECT_TRUE(contract->set.empty());
  EXPECT_TRUE(contract->fallback.empty());
}

}  // namespace
}  // namespace dtrun::plan

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "launchers/schedulers/testing/asking.h"

namespace dtrun::schedulers {
namespace {

using hosts::HostCount;
using ::testing::HasSubstr;
using Hosts = std::vector<hosts::HostSlots>;
using Environment = hosts::Environment;

Result<hosts::Allocation> ReadSlurm(const Environment& environment) { return Ask("slurm", environment); }

const Environment kBatch = {{"SLURM_JOB_NODELIST", "node[1-3]"},
                            {"SLURM_JOB_NUM_NODES", "3"},
                            {"SLURM_TASKS_PER_NODE", "2(x2),1"},
                            {"SLURM_JOB_CPUS_PER_NODE", "8(x3)"}};

std::string ErrorWith(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  const auto allocation = ReadSlurm(environment);
  return allocation.ok() ? "no error" : allocation.error().text;
}

TEST(Slurm, ABatchScriptHasHostsAndTasks) {
  const auto allocation = ReadSlurm(kBatch);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"node1", 2}, {"node2", 2}, {"node3", 1}}));
  EXPECT_EQ(allocation->count, (HostCount{3, 3}));
  EXPECT_FALSE(allocation->own_index.has_value());
  EXPECT_EQ(allocation->root_address, "node1");
}

TEST(Slurm, SlotsAreTasksPerNodeOrElseProcessors) {
  Environment environment = kBatch;
  environment.erase("SLURM_TASKS_PER_NODE");
  EXPECT_EQ(ReadSlurm(environment)->hosts[0].slots, 8);
  environment["SLURM_NTASKS_PER_NODE"] = "4";
  EXPECT_EQ(ReadSlurm(environment)->hosts[2].slots, 4);
}

TEST(Slurm, AStepKnowsItsOwnHost) {
  Environment environment = kBatch;
  environment.insert({{"SLURM_STEP_NODELIST", "node[2-3]"},
                      {"SLURM_STEP_NUM_NODES", "2"},
                      {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                      {"SLURM_NODEID", "1"},
                      {"SLURM_JOB_ID", "123456"}});
  const auto allocation = ReadSlurm(environment);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"node2", {}}, {"node3", {}}}));
  EXPECT_TRUE(allocation->everywhere);
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->root_address, "node2");
  EXPECT_EQ(allocation->rank_port, 18456);
}

Environment Arbitrary(const std::string& order) {
  const std::string path = ::testing::TempDir() + "slurm-order-" + std::to_string(::getpid());
  std::ofstream(path) << order;
  Environment environment = kBatch;
  environment.insert({{"SLURM_DISTRIBUTION", "arbitrary"}, {"SLURM_HOSTFILE", path}, {"SLURM_NTASKS", "5"}});
  return environment;
}

TEST(Slurm, AHostfileOrdersTheHosts) {
  Environment environment = Arbitrary("# mine\nnode3\nnode[1-1]\nnode1\nnode2\nnode2\nnode9\n");
  environment["SLURMD_NODENAME"] = "node1";
  const auto allocation = ReadSlurm(environment);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"node3", 1}, {"node1", 2}, {"node2", 2}}));
  EXPECT_EQ(allocation->own_index, 1);
  environment.erase("SLURM_DISTRIBUTION");  // srun does not read the file either
  EXPECT_EQ(ReadSlurm(environment)->hosts[0].name, "node1");
}

TEST(Slurm, AHostfileOrdersTheHostsOfAStep) {
  Environment environment = Arbitrary("node3\nnode2\n");
  environment.insert({{"SLURM_STEP_NODELIST", "node[2-3]"}, {"SLURM_NODEID", "0"}});
  const auto allocation = ReadSlurm(environment);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"node3", {}}, {"node2", {}}}));
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->root_address, "node3");
}

TEST(Slurm, AHostfileThatCannotBeFollowedIsRefused) {
  const auto error = [](const std::string& order) { return ErrorWith(Arbitrary(order), {}); };
  EXPECT_THAT(error("node1\nnode2\nnode1\nnode3\n"), HasSubstr("SLURM_HOSTFILE returns to host 'node1'"));
  EXPECT_THAT(error("node1\nnode7\n"), HasSubstr("has host 'node7', and SLURM_JOB_NODELIST has not"));
  EXPECT_THAT(error("node1\n"), HasSubstr("SLURM_HOSTFILE has 1 hosts, and SLURM_JOB_NODELIST has 3"));
  EXPECT_THAT(error("node[1\n"), HasSubstr("SLURM_HOSTFILE: "));
  EXPECT_THAT(ErrorWith(Arbitrary(""), {{"SLURM_HOSTFILE", "/nowhere/order"}}), HasSubstr("/nowhere/order"));
}

TEST(Slurm, AnInteractiveShellSpeaksForTheAllocation) {
  Environment environment = kBatch;
  environment.insert({{"SLURM_STEP_NODELIST", "node1"},
                      {"SLURM_STEP_NUM_NODES", "1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "1"},
                      {"SLURM_STEP_ID", "4294967290"},
                      {"SLURM_NODEID", "0"}});
  const auto allocation = ReadSlurm(environment);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->count, (HostCount{3, 3}));
  EXPECT_FALSE(allocation->own_index.has_value());
}

TEST(Slurm, AStepWithSeveralTasksOnAHostIsRefused) {
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_STEP_NODELIST", "node[1-2]"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                 {"SLURM_NODEID", "0"}}),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE says 2(x2) tasks"));
}

TEST(Slurm, PmiRankOfItsOwnTaskIsItsOwn) {
  Environment environment = kBatch;
  environment.insert(
      {{"SLURM_STEP_NODELIST", "node1"}, {"SLURM_NODEID", "0"}, {"SLURM_PROCID", "1"}, {"PMI_RANK", "1"}});
  EXPECT_THAT(ReadSlurm(environment)->implies, ::testing::ElementsAre("pmi"));
  environment["PMI_RANK"] = "0";  // of an mpiexec inside
  EXPECT_THAT(ReadSlurm(environment)->implies, ::testing::IsEmpty());
}

TEST(Slurm, MayCallThisHostByANameThatItDoesNotHave) {
  Environment environment = kBatch;
  environment["SLURMD_NODENAME"] = "node2";
  const auto allocation = ReadSlurm(environment);
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_FALSE(allocation->everywhere);
}

TEST(Slurm, OneStepStartsAnAgentOnEachNode) {
  const auto commands = AskToConnect("slurm", {"node1", "node2"}, {{"SLURM_JOB_ID", "7"}});
  ASSERT_TRUE(commands) << commands.error().text;
  ASSERT_EQ(commands->size(), 1u);
  const hosts::StartCommand& step = commands->front();
  EXPECT_THAT(step.argv, ::testing::IsSupersetOf({"--nodes=2", "--ntasks=2", "--nodelist=node1,node2"}));
  EXPECT_EQ(step.argv[step.argv.size() - 2], "/opt/dtrun");
  EXPECT_EQ(step.argv.back(), "agent");
  EXPECT_EQ(step.host_variable, "SLURMD_NODENAME");
  EXPECT_THAT(AskToConnect("slurm", {"node1"}, {}).error().text, HasSubstr("SLURM_JOB_ID is unset"));
}

TEST(Slurm, ContradictionsNameBothVariables) {
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_JOB_NUM_NODES", "2"}}),
              HasSubstr("SLURM_JOB_NUM_NODES says 2, but SLURM_JOB_NODELIST says 3 hosts"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_TASKS_PER_NODE", "2(x2)"}}),
              HasSubstr("SLURM_JOB_NODELIST says 3 hosts, SLURM_TASKS_PER_NODE='2(x2)' says 2"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_NTASKS_PER_NODE", "1"}}),
              HasSubstr("SLURM_TASKS_PER_NODE says 2(x2),1, SLURM_NTASKS_PER_NODE says 1"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_STEP_NODELIST", "node1"}, {"SLURM_NODEID", "1"}}),
              HasSubstr("SLURM_NODEID says 1, SLURM_STEP_NODELIST has 1 hosts"));
}

TEST(Slurm, MissingAndMalformedVariablesAreNamed) {
  EXPECT_THAT(ErrorWith({}, {}), HasSubstr("SLURM_JOB_NODELIST is unset"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_JOB_NODELIST", "node[1-"}}),
              HasSubstr("SLURM_JOB_NODELIST: 'node[1-'"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_JOB_NUM_NODES", "x"}}),
              HasSubstr("SLURM_JOB_NUM_NODES='x' is not a number"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_TASKS_PER_NODE", "0(x3)"}}),
              HasSubstr("a count that is not from 1"));
  EXPECT_THAT(ErrorWith(kBatch, {{"SLURM_STEP_NODELIST", "node1"}}), HasSubstr("SLURM_NODEID is unset"));
}

}  // namespace
}  // namespace dtrun::schedulers

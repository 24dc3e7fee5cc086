#include "core/membership/agent_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace dtrun::membership {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cluster ByShell() {
  Cluster cluster;
  cluster.remote_shell = {"ssh", "-q"};
  cluster.dtrun = "/opt/dt run/dtrun";
  return cluster;
}

Cluster BySlurm() {
  Cluster cluster;
  cluster.connect = Cluster::Connect::kSlurm;
  cluster.dtrun = "/opt/dtrun";
  return cluster;
}

TEST(ShellCommand, QuotesForTheShellOnTheOtherSide) {
  EXPECT_THAT(ShellCommand(ByShell(), "node1"),
              ElementsAre("ssh", "-q", "node1", "'/opt/dt run/dtrun'", "agent"));
}

TEST(StepCommand, HasOneAgentOnEachNode) {
  const auto argv = StepCommand(BySlurm(), {"node1", "node2"});
  EXPECT_THAT(argv, Contains("--nodes=2"));
  EXPECT_THAT(argv, Contains("--ntasks=2"));
  EXPECT_THAT(argv, Contains("--nodelist=node1,node2"));
  EXPECT_EQ(argv[argv.size() - 2], "/opt/dtrun");
  EXPECT_EQ(argv.back(), "agent");
}

TEST(IsFinal, TriesAgainWhatMayPass) {
  const Cluster ssh = ByShell();
  EXPECT_FALSE(IsFinal(ssh, {255, 0}, "ssh: connect to host node1 port 22: Connection refused"));
  EXPECT_FALSE(IsFinal(ssh, {0, SIGKILL}, ""));
  EXPECT_TRUE(IsFinal(ssh, {255, 0}, "me@node1: Permission denied (publickey)."));
  EXPECT_TRUE(IsFinal(ssh, {127, 0}, "sh: dtrun: not found"));
  EXPECT_TRUE(IsFinal(BySlurm(), {1, 0}, "srun: error: Invalid job id"));
}

TEST(IsFinal, KnowsAWrongNameFromAResolverThatDoesNotAnswer) {
  Cluster ssh = ByShell();
  const std::string unknown = "ssh: Could not resolve hostname nodw1: Name or service not known";
  EXPECT_TRUE(IsFinal(ssh, {255, 0}, unknown));
  EXPECT_FALSE(
      IsFinal(ssh, {255, 0}, "ssh: Could not resolve hostname nodw1: Temporary failure in name resolution"));
  ssh.names_come_late = true;
  EXPECT_FALSE(IsFinal(ssh, {255, 0}, unknown));
}

TEST(IsTelling, PassesByWhatOnlySaysThatATaskEnded) {
  EXPECT_FALSE(IsTelling("srun: error: node1: task 0: Exited with exit code 2"));
  EXPECT_FALSE(IsTelling("srun: error: node[1-2]: tasks 0-1: Killed"));
  EXPECT_TRUE(IsTelling("srun: error: Unable to create step for job 7: Invalid job id specified"));
  EXPECT_TRUE(IsTelling("slurmstepd: error: execve(): /opt/dtrun: No such file or directory"));
}

TEST(WhyEnded, SaysWhatToDo) {
  EXPECT_THAT(WhyEnded(ByShell(), "node9", {127, 0}, "sh: not found"),
              HasSubstr("sh: not found; install dtrun there as"));
  EXPECT_THAT(WhyEnded(ByShell(), "node9", {255, 0}, ""),
              HasSubstr("ssh exited with code 255 before the agent joined; try `ssh -q node9 true` by hand"));
  EXPECT_THAT(WhyEnded(ByShell(), "node9", {255, 0},
                       "ssh: Could not resolve hostname node9: Name or service not known"),
              HasSubstr("known; correct the name in --hosts or cluster.hosts"));
  EXPECT_THAT(WhyEnded(BySlurm(), "node9", {2, 0},
                       "slurmstepd: error: execve(): /opt/dtrun: No such file or directory"),
              HasSubstr("directory; install dtrun there as '/opt/dtrun'"));
  EXPECT_THAT(WhyEnded(BySlurm(), "node9", {0, SIGKILL}, ""), HasSubstr("srun was killed by SIGKILL"));
  EXPECT_THAT(WhyEnded(ByShell(), "node9", {0, 0}, "Welcome to node9"),
              HasSubstr("Welcome to node9; ssh exited with code 0 before the agent joined"));
}

TEST(ShellTrial, QuotesTheWholeCommand) {
  Cluster cluster = ByShell();
  cluster.remote_shell = {"sh", "-c", "sleep 100"};
  EXPECT_EQ(ShellTrial(cluster, "node9"), "sh -c 'sleep 100' node9 true");
}

}  // namespace
}  // namespace dtrun::membership

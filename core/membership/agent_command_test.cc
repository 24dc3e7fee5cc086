#include "core/membership/agent_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

namespace dtrun::membership {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Cluster ByShell() {
  Cluster cluster;
  cluster.remote_shell = {"ssh", "-q"};
  cluster.dtrun = "/opt/dt run/dtrun";
  return cluster;
}

Cluster ByLauncher() {
  Cluster cluster;
  cluster.connect = Cluster::Connect::kLauncher;
  cluster.launcher = "slurm";
  cluster.dtrun = "/opt/dtrun";
  return cluster;
}

const hosts::StartCommand kStep = {
    {"/usr/bin/srun", "/opt/dtrun", "agent"}, {0, 1}, "NODE", "srun true", ": task"};

TEST(ShellCommand, QuotesForTheShellOnTheOtherSide) {
  EXPECT_THAT(ShellCommand(ByShell(), "node1").argv,
              ElementsAre("ssh", "-q", "node1", "'/opt/dt run/dtrun'", "agent"));
}

TEST(IsFinal, TriesAgainWhatMayPass) {
  const Cluster ssh = ByShell();
  EXPECT_FALSE(IsFinal(ssh, {255, 0}, "ssh: connect to host node1 port 22: Connection refused"));
  EXPECT_FALSE(IsFinal(ssh, {0, SIGKILL}, ""));
  EXPECT_FALSE(IsFinal(ssh, {128 + SIGKILL, 0}, "dtrun: the agent (pid 7) was killed by signal 9 (SIGKILL)"));
  EXPECT_TRUE(IsFinal(ssh, {255, 0}, "me@node1: Permission denied (publickey)."));
  EXPECT_TRUE(IsFinal(ssh, {127, 0}, "sh: dtrun: not found"));
  EXPECT_TRUE(IsFinal(ByLauncher(), {1, 0}, "srun: error: Invalid job id"));
}

TEST(AgentDied, NotWhereItHasLostTheRoot) {
  EXPECT_TRUE(AgentDied({128 + SIGKILL, 0}));
  EXPECT_TRUE(AgentDied({0, SIGKILL}));
  EXPECT_TRUE(AgentDied({255, 0}));  // sshd was killed
  EXPECT_FALSE(AgentDied({1, 0}));
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
  EXPECT_FALSE(IsTelling(kStep, "srun: error: node1: task 0: Exited with exit code 2"));
  EXPECT_FALSE(IsTelling(kStep, "srun: error: node[1-2]: tasks 0-1: Killed"));
  EXPECT_TRUE(IsTelling(kStep, "srun: error: Unable to create step for job 7: Invalid job id specified"));
  EXPECT_TRUE(IsTelling(kStep, "slurmstepd: error: execve(): /opt/dtrun: No such file or directory: task"));
  EXPECT_TRUE(IsTelling(ShellCommand(ByShell(), "node1"), "ssh: node1: task 0: Exited"));
}

TEST(WhyEnded, SaysWhatToDo) {
  const Cluster ssh = ByShell();
  const hosts::StartCommand shell = ShellCommand(ssh, "node9");
  EXPECT_THAT(WhyEnded(ssh, shell, {127, 0}, "sh: not found"),
              HasSubstr("sh: not found; install dtrun there as"));
  EXPECT_THAT(WhyEnded(ssh, shell, {255, 0}, ""),
              HasSubstr("ssh exited with code 255 before the agent joined; try `ssh -q node9 true` by hand"));
  EXPECT_THAT(
      WhyEnded(ssh, shell, {255, 0}, "ssh: Could not resolve hostname node9: Name or service not known"),
      HasSubstr("known; correct the name in --hosts or cluster.hosts"));
  EXPECT_THAT(WhyEnded(ByLauncher(), kStep, {2, 0},
                       "slurmstepd: error: execve(): /opt/dtrun: No such file or directory"),
              HasSubstr("directory (a command of launcher 'slurm'); install dtrun there as '/opt/dtrun'"));
  EXPECT_EQ(WhyEnded(ByLauncher(), kStep, {0, SIGKILL}, ""),
            "srun was killed by SIGKILL before the agent joined (a command of launcher 'slurm'); try `srun "
            "true` by hand");
  EXPECT_THAT(WhyEnded(ssh, shell, {0, 0}, "Welcome to node9"),
              HasSubstr("Welcome to node9; ssh exited with code 0 before the agent joined"));
}

TEST(ShellCommand, HasATrialWithTheWholeCommand) {
  Cluster cluster = ByShell();
  cluster.remote_shell = {"sh", "-c", "sleep 100"};
  EXPECT_EQ(ShellCommand(cluster, "node9").trial, "sh -c 'sleep 100' node9 true");
}

}  // namespace
}  // namespace dtrun::membership

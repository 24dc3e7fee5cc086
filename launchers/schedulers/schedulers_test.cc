// Each source of hosts on what its platform writes: recorded variables and files, the answer, and what is
// said when they are missing or contradict each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "launchers/schedulers/testing/asking.h"

namespace dtrun::schedulers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Environment = hosts::Environment;
using Hosts = std::vector<hosts::HostSlots>;

class SchedulersTest : public ::testing::Test {
 protected:
  SchedulersTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "schedulers-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~SchedulersTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  // "no error", or what was said.
  static std::string ErrorOf(const std::string& name, const Environment& environment) {
    const auto allocation = Ask(name, environment);
    return allocation ? "no error" : allocation.error().text;
  }
  static Environment With(Environment environment, const Environment& changes) {
    for (const auto& [variable, value] : changes) environment[variable] = value;
    return environment;
  }

  std::filesystem::path folder_;
};

TEST_F(SchedulersTest, WhatIsNotThereIsNotFoundAndNamesItsVariable) {
  for (const auto& [name, variable] :
       {std::pair("pbs", "PBS_JOBID"), std::pair("lsf", "LSB_JOBID"), std::pair("gridengine", "PE_HOSTFILE"),
        std::pair("flux", "FLUX_JOB_ID"), std::pair("sagemaker", "SM_HOSTS"),
        std::pair("kubernetes", "JOB_COMPLETION_INDEX"), std::pair("slurm", "SLURM_JOB_NODELIST")}) {
    const auto allocation = Ask(name, {{"HOME", "/root"}, {"RANK", "0"}});
    ASSERT_FALSE(allocation) << name;
    EXPECT_EQ(allocation.error().code, DTRUN_NOT_FOUND) << allocation.error().text;
    EXPECT_THAT(allocation.error().text, HasSubstr(std::string(variable) + " is unset"));
  }
}

// ---- PBS Professional: select=2:ncpus=32:mpiprocs=2; Torque: nodes=2:ppn=2

TEST_F(SchedulersTest, PbsHasALineForEachSlot) {
  const Environment job = {{"PBS_JOBID", "4711.pbs01"},
                           {"PBS_ENVIRONMENT", "PBS_BATCH"},
                           {"PBS_NODEFILE", Write("4711.pbs01",
                                                  "r1i0n3.ib0.site\nr1i0n3.ib0.site\n"
                                                  "r1i0n7.ib0.site\nr1i0n7.ib0.site\n")}};
  const auto allocation = Ask("pbs", job);
  ASSERT_TRUE(allocation) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"r1i0n3.ib0.site", 2}, {"r1i0n7.ib0.site", 2}}));
  EXPECT_FALSE(allocation->everywhere);
  EXPECT_EQ(allocation->root_address, "r1i0n3.ib0.site");
  EXPECT_EQ(allocation->evidence, "PBS_JOBID");
  EXPECT_EQ(ErrorOf("pbs", With(job, {{"PBS_NUM_NODES", "2"}, {"PBS_NUM_PPN", "2"}, {"PBS_NP", "4"}})),
            "no error");
}

TEST_F(SchedulersTest, PbsContradictionsAreNamed) {
  const Environment job = {{"PBS_JOBID", "7.head"},
                           {"PBS_NODEFILE", Write("nodes", "node1\nnode1\nnode2\n")}};
  EXPECT_THAT(ErrorOf("pbs", With(job, {{"PBS_NUM_NODES", "1"}})),
              HasSubstr("PBS_NUM_NODES says 1, but PBS_NODEFILE has 2 hosts with 3 slots"));
  EXPECT_THAT(ErrorOf("pbs", With(job, {{"PBS_NP", "x"}})), HasSubstr("PBS_NP='x' is not a number"));
  EXPECT_THAT(ErrorOf("pbs", With(job, {{"PBS_NP", "4"}})), HasSubstr("PBS_NP says 4, but"));
  EXPECT_THAT(ErrorOf("pbs", {{"PBS_JOBID", "7.head"}}), HasSubstr("PBS_NODEFILE is unset"));
  EXPECT_THAT(ErrorOf("pbs", {{"PBS_JOBID", "7.head"}, {"PBS_NODEFILE", "/nowhere/nodes"}}),
              HasSubstr("PBS_NODEFILE: '/nowhere/nodes': No such file"));
  EXPECT_THAT(ErrorOf("pbs", With(job, {{"PBS_NODEFILE", Write("empty", "\n")}})),
              HasSubstr("PBS_NODEFILE names no host"));
  EXPECT_THAT(ErrorOf("pbs", With(job, {{"PBS_NODEFILE", Write("option", "-oProxyCommand=x\n")}})),
              HasSubstr("'-oProxyCommand=x' is not a host name"));
  EXPECT_THAT(ErrorOf("pbs", With(job, {{"PBS_NODEFILE", folder_.string()}})),
              HasSubstr("not a regular file"));
}

// ---- LSF: bsub -n 6 -R "span[ptile=4]"

TEST_F(SchedulersTest, LsfHasAFileOrPairs) {
  const Environment job = {{"LSB_JOBID", "1234"}, {"LSB_MCPU_HOSTS", "hosta 4 hostb 2 "}};
  const Hosts expected = {{"hosta", 4}, {"hostb", 2}};
  EXPECT_EQ(Ask("lsf", job)->hosts, expected);
  const Environment both = With(
      job, {{"LSB_DJOB_HOSTFILE", Write("1234.hostfile", "hosta\nhosta\nhosta\nhosta\nhostb\nhostb\n")}});
  const auto allocation = Ask("lsf", both);
  ASSERT_TRUE(allocation) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, expected);
  EXPECT_FALSE(allocation->everywhere);
}

TEST_F(SchedulersTest, LsfContradictionsAreNamed) {
  EXPECT_THAT(ErrorOf("lsf", {{"LSB_JOBID", "1"}}), HasSubstr("LSB_MCPU_HOSTS is unset"));
  EXPECT_THAT(ErrorOf("lsf", {{"LSB_JOBID", "1"}, {"LSB_MCPU_HOSTS", "hosta 4 hostb"}}),
              HasSubstr("host 'hostb' has no number of slots after it"));
  EXPECT_THAT(ErrorOf("lsf", {{"LSB_JOBID", "1"}, {"LSB_MCPU_HOSTS", "hosta 0"}}), HasSubstr("has 0 slots"));
  EXPECT_THAT(ErrorOf("lsf", {{"LSB_JOBID", "1"},
                              {"LSB_MCPU_HOSTS", "hosta 2"},
                              {"LSB_DJOB_HOSTFILE", Write("hosts", "hosta\nhostb\n")}}),
              HasSubstr("LSB_MCPU_HOSTS='hosta 2' has other hosts or slots than LSB_DJOB_HOSTFILE="));
}

TEST_F(SchedulersTest, LsfReachesHostsByBlaunch) {
  const auto commands = AskToConnect("lsf", {"hostb", "hostc"}, {{"LSB_JOBID", "1"}});
  ASSERT_TRUE(commands) << commands.error().text;
  ASSERT_EQ(commands->size(), 2u);
  EXPECT_THAT((*commands)[1].argv, ElementsAre("blaunch", "hostc", "-no-shell", "/opt/dtrun", "agent"));
  EXPECT_THAT((*commands)[1].hosts, ElementsAre(1u));
  EXPECT_EQ((*commands)[1].trial, "blaunch hostc -no-shell hostname");
  EXPECT_THAT(AskToConnect("lsf", {"hostb"}, {}).error().text, HasSubstr("LSB_JOBID is unset"));
}

// ---- Grid Engine: qsub -pe mpi 6; a host may be there with two queues

TEST_F(SchedulersTest, GridEngineAddsUpTheQueuesOfAHost) {
  const Environment job = {{"JOB_ID", "42"},
                           {"NSLOTS", "6"},
                           {"NHOSTS", "2"},
                           {"PE_HOSTFILE", Write("pe_hostfile",
                                                 "exec1.site 2 all.q@exec1.site UNDEFINED\n"
                                                 "exec2.site 3 all.q@exec2.site UNDEFINED\n"
                                                 "exec1.site 1 short.q@exec1.site 0,1:0,2\n")}};
  const auto allocation = Ask("gridengine", job);
  ASSERT_TRUE(allocation) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"exec1.site", 3}, {"exec2.site", 3}}));
  EXPECT_EQ(allocation->evidence, "PE_HOSTFILE");
  EXPECT_THAT(ErrorOf("gridengine", With(job, {{"NSLOTS", "8"}})),
              HasSubstr("NSLOTS says 8, but PE_HOSTFILE has 6 slots"));
  EXPECT_THAT(ErrorOf("gridengine", With(job, {{"NHOSTS", "3"}})),
              HasSubstr("NHOSTS says 3, but PE_HOSTFILE has 2 hosts"));
  EXPECT_THAT(ErrorOf("gridengine", With(job, {{"PE_HOSTFILE", Write("bad", "exec1 many all.q\n")}})),
              HasSubstr("'exec1 many all.q' is not \"host slots queue processors\""));
}

TEST_F(SchedulersTest, GridEngineReachesHostsByQrsh) {
  const auto commands = AskToConnect("gridengine", {"exec2"}, {{"JOB_ID", "42"}, {"PE_HOSTFILE", "/x"}});
  ASSERT_TRUE(commands) << commands.error().text;
  EXPECT_THAT(commands->front().argv, ElementsAre("qrsh", "-inherit", "exec2", "/opt/dtrun", "agent"));
  EXPECT_THAT(AskToConnect("gridengine", {"exec2"}, {}).error().text, HasSubstr("run dtrun from qsub -pe"));
}

// ---- Flux: an initial program asks its broker, here one that answers from a file

class FluxTest : public SchedulersTest {
 protected:
  FluxTest() : path_(::getenv("PATH")) { ::setenv("PATH", (folder_.string() + ":" + path_).c_str(), 1); }
  ~FluxTest() override { ::setenv("PATH", path_.c_str(), 1); }
  void Broker(const std::string& body) const {
    ::chmod(Write("flux", "#!/bin/sh\n" + body + "\n").c_str(), 0755);
  }
  const std::string path_;
};

TEST_F(FluxTest, AnInitialProgramAsksItsBroker) {
  Broker(R"([ "$*" = "getattr hostlist" ] && echo "corona[171-172,180]")");
  const Environment job = {{"FLUX_URI", "local:///run/flux/local"}};
  const auto allocation = Ask("flux", job);
  ASSERT_TRUE(allocation) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"corona171", {}}, {"corona172", {}}, {"corona180", {}}}));
  EXPECT_FALSE(allocation->everywhere);
  const auto commands = AskToConnect("flux", {"corona172", "corona180"}, job);
  ASSERT_TRUE(commands) << commands.error().text;
  EXPECT_THAT((*commands)[1].argv, ElementsAre("flux", "exec", "--rank=2", "/opt/dtrun", "agent"));
  EXPECT_THAT(AskToConnect("flux", {"other"}, job).error().text,
              HasSubstr("'other' is none of the instance's"));
  EXPECT_THAT(AskToConnect("flux", {"corona172"}, {}).error().text, HasSubstr("FLUX_URI is unset"));
}

TEST_F(FluxTest, ABrokerThatFailsIsNamed) {
  Broker("exit 1");
  EXPECT_THAT(ErrorOf("flux", {{"FLUX_URI", "local:///x"}}), HasSubstr("`flux getattr hostlist` failed"));
  Broker("echo 'corona[1-'");
  EXPECT_THAT(ErrorOf("flux", {{"FLUX_URI", "local:///x"}}), HasSubstr("'[' is not closed"));
}

TEST_F(SchedulersTest, FluxNumbersItsTasks) {
  const Environment task = {{"FLUX_JOB_ID", "f23M1vFtd"},
                            {"FLUX_URI", "local:///run/flux/local"},
                            {"FLUX_JOB_SIZE", "4"},
                            {"FLUX_JOB_NNODES", "4"},
                            {"FLUX_TASK_RANK", "3"},
                            {"FLUX_TASK_LOCAL_ID", "0"},
                            {"PMI_RANK", "3"}};
  const auto allocation = Ask("flux", task);
  ASSERT_TRUE(allocation) << allocation.error().text;
  EXPECT_TRUE(allocation->everywhere);
  EXPECT_EQ(allocation->own_index, 3);
  EXPECT_EQ(allocation->count, (hosts::HostCount{4, 4}));
  EXPECT_THAT(allocation->implies, ElementsAre("pmi"));
  EXPECT_THAT(ErrorOf("flux", With(task, {{"FLUX_JOB_SIZE", "8"}})),
              HasSubstr("FLUX_JOB_SIZE says 8, but FLUX_JOB_NNODES says 4"));
  EXPECT_THAT(ErrorOf("flux", With(task, {{"FLUX_TASK_RANK", "4"}})),
              HasSubstr("FLUX_TASK_RANK says 4, FLUX_JOB_NNODES says 4"));
}

// ---- SageMaker: variables of the training toolkit, as its documentation prints them

TEST_F(SchedulersTest, SageMakerNumbersHostsInOrder) {
  const Environment job = {
      {"SM_HOSTS", R"(["algo-1","algo-2"])"}, {"SM_CURRENT_HOST", "algo-2"}, {"SM_NUM_GPUS", "8"}};
  const auto allocation = Ask("sagemaker", job);
  ASSERT_TRUE(allocation) << allocation.error().text;
  EXPECT_EQ(allocation->hosts, (Hosts{{"algo-1", {}}, {"algo-2", {}}}));
  EXPECT_TRUE(allocation->everywhere);
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->root_address, "algo-1");
  EXPECT_EQ(allocation->rank_port, 7777);
  EXPECT_EQ(allocation->processes_per_host, "8");
  EXPECT_EQ(Ask("sagemaker", With(job, {{"SM_NUM_GPUS", "0"}}))->processes_per_host, "");
  EXPECT_THAT(ErrorOf("sagemaker", With(job, {{"SM_CURRENT_HOST", "algo-3"}})),
              HasSubstr("this host is 'algo-3', which is not in SM_HOSTS"));
  EXPECT_THAT(ErrorOf("sagemaker", With(job, {{"SM_HOSTS", "algo-1,algo-2"}})),
              HasSubstr("SM_HOSTS='algo-1,algo-2' is not of the form"));
  EXPECT_THAT(ErrorOf("sagemaker", {{"SM_HOSTS", R"(["algo-1"])"}}), HasSubstr("SM_CURRENT_HOST is unset"));
  EXPECT_THAT(ErrorOf("sagemaker", {{"SM_HOSTS", R"(["a","a"])"}, {"SM_CURRENT_HOST", "a"}}),
              HasSubstr("SM_HOSTS names host 'a' twice"));
}

// ---- Kubernetes: the pod "train-3" of an Indexed Job, and one of the JobSet "net" with its replicated job
// "workers"

TEST_F(SchedulersTest, KubernetesNumbersPodsAndKnowsPodZeroByItsName) {
  const auto job = Ask("kubernetes", {{"JOB_COMPLETION_INDEX", "3"}, {"HOSTNAME", "train-3"}});
  ASSERT_TRUE(job) << job.error().text;
  EXPECT_TRUE(job->everywhere && job->hosts.empty());
  EXPECT_EQ(job->own_index, 3);
  EXPECT_EQ(job->count, (hosts::HostCount{0, 0}));  // nothing in a pod says it
  EXPECT_EQ(job->root_address, "train-0");
  EXPECT_EQ(job->rank_port, 29500);
  EXPECT_EQ(Ask("kubernetes", {{"JOB_COMPLETION_INDEX", "1"}, {"HOSTNAME", "net-workers-0-1"}})->root_address,
            "net-workers-0-0");
  const auto told = Ask("kubernetes", {{"JOB_COMPLETION_INDEX", "1"},
                                       {"HOSTNAME", "any"},
                                       {"MASTER_ADDR", "net-leader-0-0.example"},
                                       {"MASTER_PORT", "23456"}});
  ASSERT_TRUE(told) << told.error().text;
  EXPECT_EQ(told->root_address, "net-leader-0-0.example");
  EXPECT_EQ(told->rank_port, 23456);
}

TEST_F(SchedulersTest, KubernetesContradictionsAreNamed) {
  EXPECT_THAT(ErrorOf("kubernetes", {{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "train-3"}}),
              AllOf(HasSubstr("HOSTNAME says train-3"), HasSubstr("JOB_COMPLETION_INDEX=2")));
  EXPECT_THAT(ErrorOf("kubernetes",
                      {{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "train-2"}, {"MASTER_PORT", "70000"}}),
              HasSubstr("MASTER_PORT='70000' is not a number from 1 to 65535"));
  EXPECT_THAT(ErrorOf("kubernetes", {{"JOB_COMPLETION_INDEX", "two"}}),
              HasSubstr("JOB_COMPLETION_INDEX='two' is not a number"));
}

}  // namespace
}  // namespace dtrun::schedulers

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/testing.h"
#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

class HostsTest : public ::testing::Test {
 protected:
  Loaded LoadWith(const std::string& cluster) {
    request_.file = folder_.Write("train.toml", "[job]\ncommand = [\"x\"]\n[cluster]\n" + cluster);
    return Load(request_, {});
  }
  JobSpec Good(const std::string& cluster) {
    Loaded loaded = LoadWith(cluster);
    EXPECT_EQ(folder_.Short(loaded.problems), "");
    return std::move(loaded.spec);
  }
  std::string Problems(const std::string& cluster) { return folder_.Short(LoadWith(cluster).problems); }

  // A launcher "batch" that finds these hosts and connects to them, and one that only connects.
  void Found(Result<hosts::Allocation> found) {
    launchers_->all["batch"] = {std::move(found), true};
    launchers_->all["tunnel"].connects = true;
    request_.launchers = [this](const auto&, const auto&) { return launchers_; };
  }

  TestFolder folder_;
  Request request_;
  std::shared_ptr<hosts::testing::FakeLaunchers> launchers_ =
      std::make_shared<hosts::testing::FakeLaunchers>();
};

TEST_F(HostsTest, AHostfileStandsInForTheList) {
  folder_.Write("hosts", "node0 slots=4 # the first\n\nnode1:2\n");
  const JobSpec spec = Good("hostfile = \"hosts\"\n");
  EXPECT_EQ(*spec.cluster.hosts, (Texts{"node0:4", "node1:2"}));
  EXPECT_EQ(spec.cluster.hosts.value.origin.place, (folder_.path() / "hosts").string());
}

TEST_F(HostsTest, ANumberOfThisHostNeedsHostsThatRunDtrunThemselves) {
  EXPECT_THAT(Problems("host_index = 1\n"), AllOf(HasSubstr("train.toml:4:14: cluster.host_index"),
                                                  HasSubstr("cluster.connect = \"manual\"")));
  EXPECT_EQ(*Good("host_index = 1\nconnect = \"manual\"\n").cluster.host_index, 1);
}

TEST_F(HostsTest, WhatIsWrongInAHostfileHasItsPlace) {
  folder_.Write("hosts", "node0\nnode1 slts=4\n");
  EXPECT_THAT(Problems("hostfile = \"hosts\"\n"),
              AllOf(HasSubstr("hosts:2:7: unknown word 'slts'"),
                    HasSubstr("the file is set by train.toml:4:12"), HasSubstr("did you mean 'slots'")));
  EXPECT_THAT(Problems("hostfile = \"nowhere\"\n"), HasSubstr("nowhere"));
}

TEST_F(HostsTest, AnAllocationThatALauncherFindsIsAListOfHosts) {
  hosts::Allocation batch = hosts::testing::Batch({{"gpu01", 2}, {"gpu02", 2}});
  batch.own_index = 1;
  batch.sharing = "export it";
  Found(batch);
  const JobSpec spec = Good("from = \"auto\"\n");
  EXPECT_EQ(*spec.cluster.hosts, (Texts{"gpu01:2", "gpu02:2"}));
  EXPECT_EQ(spec.cluster.hosts.value.origin.place, "variables of batch");
  EXPECT_EQ(*spec.cluster.connect, "batch");
  EXPECT_FALSE(spec.cluster.host_index.has());
  EXPECT_EQ(spec.hosts_from.platform, "batch");
  EXPECT_EQ(spec.hosts_from.sharing, "export it");
  EXPECT_EQ(spec.hosts_from.here, "gpu02");
  EXPECT_EQ(*Good("from = \"batch\"\nconnect = \"ssh\"\n").cluster.connect, "ssh");
}

TEST_F(HostsTest, AConnectorIsALauncherThatConnects) {
  Found(hosts::testing::NotThere());
  EXPECT_EQ(*Good("hosts = [\"a\"]\nconnect = \"tunnel\"\n").cluster.connect, "tunnel");
  EXPECT_THAT(Problems("hosts = [\"a\"]\nconnect = \"tunel\"\n"),
              AllOf(HasSubstr("train.toml:5:11: cluster.connect"), HasSubstr("did you mean \"tunnel\"?"),
                    HasSubstr("there are ssh, manual, batch, tunnel")));
}

TEST_F(HostsTest, APlatformThatDoesNotSayHowManyHostsLeavesItToTheUser) {
  hosts::Allocation pods;
  pods.count = {0, 0};
  pods.everywhere = true;
  pods.own_index = 1;
  pods.root_address = "train-0";
  pods.rank_port = 29500;
  Found(pods);
  EXPECT_THAT(Problems("from = \"batch\"\n"),
              HasSubstr("do not say how many hosts there are; set cluster.host_count"));
  const JobSpec spec = Good("from = \"batch\"\nhost_count = 3\n");
  EXPECT_EQ(*spec.cluster.host_count, 3);
  EXPECT_EQ(*spec.cluster.host_index, 1);
  EXPECT_EQ(*spec.cluster.connect, "manual");
}

TEST_F(HostsTest, APlatformThatStartsEveryHostSaysWhichThisIs) {
  request_.environment = {{"RANK", "1"},
                          {"WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "fd00::1"},
                          {"MASTER_PORT", "6000"},
                          {"NPROC_PER_NODE", "8"}};
  const JobSpec spec = Good("from = \"pai\"\n");
  EXPECT_FALSE(spec.cluster.hosts.has());
  EXPECT_EQ(*spec.cluster.host_count, 4);
  EXPECT_EQ(*spec.cluster.host_index, 1);
  EXPECT_EQ(*spec.cluster.root, "[fd00::1]:16017");  // 6000 is rank 0's port
  EXPECT_EQ(*spec.job.master_port, 6000);
  EXPECT_EQ(*spec.cluster.connect, "manual");
  EXPECT_EQ(*spec.job.processes_per_host, 8);
  EXPECT_THAT(*Explain(spec, "cluster.root"), HasSubstr("variables of pai in the environment"));
}

TEST_F(HostsTest, HostsMeetAtNoPortOfTheRanks) {
  request_.environment = {
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "6000"}};
  const JobSpec chosen = Good("from = \"gcp\"\nroot_port = 7000\n");
  EXPECT_EQ(*chosen.cluster.root, "node0:7000");
  EXPECT_EQ(*chosen.job.master_port, 6000);
  const JobSpec taken = Good("from = \"gcp\"\nroot = \"node0:6000\"\n");
  EXPECT_EQ(*taken.cluster.root, "node0:6000");
  EXPECT_EQ(*taken.job.master_port, 0);
  request_.environment = {{"TORCHELASTIC_RUN_ID", "r"},
                          {"GROUP_RANK", "1"},
                          {"GROUP_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "6000"}};
  const JobSpec worker = Good("from = \"torchrun\"\n");  // its agent listens there
  EXPECT_EQ(*worker.cluster.root, "node0:16017");
  EXPECT_EQ(*worker.job.master_port, 0);
}

TEST_F(HostsTest, WhatIsGivenIsAboveWhatAPlatformSays) {
  request_.environment = {
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "6000"}};
  request_.sets = {"job.processes_per_host=2"};
  const JobSpec spec = Good("from = \"gcp\"\nroot = \"other:7000\"\n");
  EXPECT_EQ(*spec.cluster.root, "other:7000");
  EXPECT_EQ(*spec.job.processes_per_host, 2);
}

TEST_F(HostsTest, TheSourceGivenLastNamesTheHosts) {
  request_.sets = {"cluster.hosts=b"};
  folder_.Write("hosts", "a\n");
  const JobSpec spec = Good("hostfile = \"hosts\"\n");
  EXPECT_EQ(*spec.cluster.hosts, Texts{"b"});
  EXPECT_FALSE(spec.cluster.hostfile.has());
}

TEST_F(HostsTest, TwoSourcesInOneFileAreRefused) {
  folder_.Write("hosts", "a\n");
  EXPECT_THAT(Problems("hosts = [\"b\"]\nhostfile = \"hosts\"\n"),
              HasSubstr("cluster.hostfile: cluster.hosts (train.toml:4:9) names the hosts already"));
}

TEST_F(HostsTest, UnsetAndUnknownPlatformsAreNamed) {
  Found(hosts::testing::NotThere());
  EXPECT_THAT(Problems("from = \"batch\"\n"), HasSubstr("BATCH_JOB is unset"));
  EXPECT_THAT(Problems("from = \"auto\"\n"), HasSubstr("no platform has set its variables"));
  EXPECT_THAT(Problems("from = \"batchh\"\n"), HasSubstr("did you mean \"batch\"?"));
}

TEST_F(HostsTest, MoreHostsThanThereAreIsAnError) {
  Found(hosts::testing::Batch({{"n1", 1}, {"n2", 1}}));
  EXPECT_THAT(Problems("from = \"batch\"\nhost_count = 4\n"),
              HasSubstr("4 hosts are requested, but there are only 2 by variables of batch: n1:1, n2:1"));
  EXPECT_EQ(*Good("from = \"batch\"\nhost_count = 1\n").cluster.hosts, Texts{"n1:1"});
  EXPECT_THAT(Problems("host_count = 2\n"),
              AllOf(HasSubstr("nothing names them"), HasSubstr("dtrun torchrun --nnodes")));
  EXPECT_EQ(*Good("host_count = 2\nconnect = \"manual\"\n").cluster.host_count, 2);
}

TEST_F(HostsTest, WhatMpirunsNIsHereIsToldWhereItIsTyped) {
  request_.given = {{"cluster.host_count", std::string("2"), {DTRUN_ORIGIN_COMMAND_LINE, "-N"}}};
  EXPECT_THAT(Problems("hosts = [\"localhost:4\"]\n"),
              HasSubstr("get more hosts; mpirun's -N 2 is --processes-per-host 2 here"));
  request_.given[0].origin.place = "--nodes";
  EXPECT_THAT(Problems("hosts = [\"localhost:4\"]\n"), ::testing::Not(HasSubstr("mpirun")));
}

TEST_F(HostsTest, AnElasticPlatformSaysHowManyHostsWillDo) {
  request_.environment = {{"PET_NNODES", "2:4"}, {"PET_MASTER_ADDR", "a"}, {"PET_MASTER_PORT", "23456"}};
  const JobSpec spec = Good("from = \"kubeflow\"\n");
  EXPECT_EQ(*spec.cluster.min_hosts, 2);
  EXPECT_EQ(*spec.cluster.host_count, 4);
  EXPECT_FALSE(spec.cluster.host_index.has());
}

TEST_F(HostsTest, TheFewestHostsAreNotMoreThanAll) {
  EXPECT_THAT(Problems("hosts = [\"a\", \"b\"]\nmin_hosts = 3\n"),
              HasSubstr("at least 3 hosts are required, but there are at most 2"));
}

TEST_F(HostsTest, AListThatMakesNoSenseIsRefused) {
  EXPECT_THAT(Problems("hosts = [\"a\", \"a\"]\n"), HasSubstr("items 1 and 2 are the same host 'a'"));
  EXPECT_THAT(Problems("hosts = [\"a:x\"]\n"), HasSubstr("'x' is not a number of slots"));
  EXPECT_THAT(Problems("hosts = [\"-oProxyCommand=x\"]\n"), HasSubstr("cluster.hosts: item 1"));
  EXPECT_THAT(Problems("hosts = []\n"), HasSubstr("the list of hosts is empty"));
}

TEST_F(HostsTest, ThePortRangeIsParsedOnce) {
  const JobSpec spec = Good("port_range = \"40000-40100\"\n");
  EXPECT_EQ(spec.ports.first, 40000);
  EXPECT_EQ(spec.ports.last, 40100);
  EXPECT_EQ(Good("").ports.last, 0);
  request_.sets = {"cluster.port_range=many"};
  EXPECT_THAT(Problems(""), HasSubstr("--set cluster.port_range=many: 'many' is not a range of ports"));
}

}  // namespace
}  // namespace dtrun::spec

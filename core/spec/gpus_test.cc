#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/this_machine.h"
#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Lists = std::map<std::string, std::string>;
using Hosts = std::vector<std::string>;

class GpusTest : public ::testing::Test {
 protected:
  Loaded LoadWith(std::vector<std::string> sets) {
    Request request;
    request.command = {"x"};
    request.sets = std::move(sets);
    return Load(request, {});
  }
  JobSpec Good(std::vector<std::string> sets) {
    Loaded loaded = LoadWith(std::move(sets));
    EXPECT_EQ(folder_.Short(loaded.problems), "");
    return std::move(loaded.spec);
  }
  std::string Problems(std::vector<std::string> sets) {
    return folder_.Short(LoadWith(std::move(sets)).problems);
  }

  TestFolder folder_;
};

TEST_F(GpusTest, IncludeMakesHostsAndTheirGpusOfAHostfile) {
  folder_.Write("hosts", "worker-0 slots=4\nworker-1 slots=4\nworker-2 slots=4\n");
  const std::string file = "cluster.hostfile=" + (folder_.path() / "hosts").string();
  const JobSpec spec = Good({file, "cluster.include=worker-2:0@worker-0:2,3"});
  EXPECT_EQ(*spec.cluster.hosts, (Hosts{"worker-0:2", "worker-2:1"}));
  EXPECT_EQ(*spec.cluster.gpus, (Lists{{"worker-0", "2,3"}, {"worker-2", "0"}}));
  EXPECT_THAT(spec.cluster.hosts.value.origin.place, HasSubstr("hosts with --set cluster.include"));
  EXPECT_THAT(
      Problems({file, "cluster.include=worker-7"}),
      AllOf(HasSubstr("cluster.include=worker-7"), HasSubstr("host 'worker-7' is not in the hosts of "),
            HasSubstr("did you mean 'worker-0'?")));
  EXPECT_THAT(Problems({file, "cluster.include=worker-0", "job.ranks=5"}),
              HasSubstr("room for 4 on 1 host "));
}

TEST_F(GpusTest, ExcludeLeavesHostsThatItDoesNotNameAsTheyAre) {
  const JobSpec spec = Good({"cluster.hosts=a:2,b:2,c", "cluster.exclude=a:0@c"});
  EXPECT_EQ(*spec.cluster.hosts, (Hosts{"a:1", "b:2"}));
  EXPECT_EQ(*spec.cluster.gpus, (Lists{{"a", "1"}}));
  EXPECT_FALSE(Good({"cluster.hosts=a:2,b:2", "cluster.exclude=a"}).cluster.gpus.has());
}

TEST_F(GpusTest, IncludeWithoutAListIsOfThisMachine) {
  for (const std::string& name : {std::string("localhost"), hosts::HostName()}) {
    const JobSpec spec = Good({"cluster.include=" + name + ":0,1"});
    EXPECT_EQ(*spec.cluster.hosts, Hosts{name + ":2"});
    EXPECT_EQ(*spec.cluster.gpus, (Lists{{name, "0,1"}}));
  }
  EXPECT_THAT(
      Problems({"cluster.include=node0.invalid:0"}),
      AllOf(HasSubstr("host 'node0.invalid' is not in the list of hosts"), HasSubstr("there is localhost")));
  EXPECT_THAT(Problems({"cluster.exclude=localhost:1"}), HasSubstr("--include localhost:0,1"));
  EXPECT_THAT(Problems({"cluster.include=a", "cluster.connect=manual", "cluster.host_count=2"}),
              HasSubstr("nothing lists them"));
}

TEST_F(GpusTest, OneTextChoosesTheHosts) {
  EXPECT_THAT(Problems({"cluster.hosts=a:2", "cluster.include=a", "cluster.exclude=a:0"}),
              HasSubstr("cluster.include (--set cluster.include) chooses the hosts already"));
  EXPECT_THAT(Problems({"cluster.hosts=a:2", "cluster.include=a:0", "cluster.gpus.a=1"}),
              HasSubstr("so does cluster.gpus (--set cluster.gpus.a)"));
}

TEST_F(GpusTest, TheTableHasHostsOfTheList) {
  EXPECT_EQ(*Good({"cluster.hosts=me@a,b", "cluster.gpus={a = \"2,3\", b = 0}"}).cluster.gpus,
            (Lists{{"b", "0"}, {"me@a", "2,3"}}));
  EXPECT_EQ(*Good({"cluster.gpus.localhost=1"}).cluster.gpus, (Lists{{"localhost", "1"}}));
  EXPECT_EQ(*Good({"cluster.hosts=a,b", "cluster.host_count=1", "cluster.gpus.b=1"}).cluster.hosts,
            Hosts{"a"})
      << "a host that is left out may stay in the table";
  EXPECT_THAT(Problems({"cluster.hosts=node-0,b", "cluster.gpus.node-1=0"}),
              HasSubstr("cluster.gpus.node-1: this host is not in the hosts of --set cluster.hosts; did you "
                        "mean 'node-0'?"));
  EXPECT_THAT(Problems({"cluster.gpus.node0.invalid=0"}), HasSubstr("this machine alone"));
  EXPECT_THAT(Problems({"cluster.gpus={localhost = 0, \"127.0.0.1\" = 1}"}),
              HasSubstr("has this host twice"));
}

TEST_F(GpusTest, WhatIsNoListNamesHostAndValue) {
  EXPECT_THAT(Problems({"cluster.hosts=a,b", "cluster.gpus.b=0,banana"}),
              AllOf(HasSubstr("cluster.gpus.b: 'banana' is no GPU"), HasSubstr("found \"0,banana\"")));
}

TEST_F(GpusTest, AVariableOfAllRanksIsNotOneOfAHost) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    EXPECT_THAT(Problems({"cluster.hosts=a,b", "cluster.gpus.b=0", std::string("job.env.") + name + "=7"}),
                AllOf(HasSubstr(name), HasSubstr("job.env sets it to '7' on all; leave one of them out")));
  }
}

}  // namespace
}  // namespace dtrun::spec

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/read.h"
#include "core/spec/testing.h"

namespace dtrun::spec {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Loaded LoadSets(Words sets, const std::string& file = {}) {
  Request request;
  request.command = {"true"};
  request.file = file;
  request.sets = std::move(sets);
  return Load(request, {});
}

JobSpec GoodSets(Words sets, const std::string& file = {}) {
  Loaded loaded = LoadSets(std::move(sets), file);
  EXPECT_EQ(Render(loaded.problems), "");
  return std::move(loaded.spec);
}

std::string ProblemsWith(Words sets) { return Render(LoadSets(std::move(sets)).problems); }

Words HostsOf(Words sets) {
  const JobSpec spec = GoodSets(std::move(sets));
  return spec.cluster.hosts.has() ? *spec.cluster.hosts : Words{};
}

TEST(Ranks, OnThisMachineAreItsProcesses) {
  const JobSpec spec = GoodSets({"job.ranks=5"});
  EXPECT_EQ(*spec.job.processes_per_host, 5);
  EXPECT_THAT(*Explain(spec, "job.processes_per_host"), HasSubstr("--set job.ranks"));
}

TEST(Ranks, FillSlotsInOrder) {
  EXPECT_EQ(HostsOf({"job.ranks=6", "cluster.hosts=a:4,b:4"}), (Words{"a:4", "b:2"}));
  EXPECT_EQ(HostsOf({"job.ranks=4", "cluster.hosts=a:4,b:4"}), (Words{"a:4"}));
  EXPECT_THAT(ProblemsWith({"job.ranks=9", "cluster.hosts=a:4,b:4"}),
              AllOf(HasSubstr("--set job.ranks=9: 9 ranks, and there is room for 8 on 2 hosts"),
                    HasSubstr("cluster.oversubscribe = true")));
  EXPECT_EQ(HostsOf({"job.ranks=11", "cluster.hosts=a:4,b:4", "cluster.oversubscribe=true"}),
            (Words{"a:6", "b:5"}));
}

TEST(Ranks, ShareHostsWithoutSlotsEqually) {
  EXPECT_EQ(HostsOf({"job.ranks=8", "cluster.hosts=a,b"}), (Words{"a:4", "b:4"}));
  EXPECT_EQ(HostsOf({"job.ranks=7", "cluster.hosts=a,b,c"}), (Words{"a:3", "b:2", "c:2"}));
  EXPECT_EQ(HostsOf({"job.ranks=2", "cluster.hosts=a,b,c"}), (Words{"a:1", "b:1"}));
  EXPECT_EQ(HostsOf({"job.ranks=7", "cluster.hosts=a,b:2,c"}), (Words{"a:3", "b:2", "c:2"}));
}

TEST(Ranks, StayWithinProcessesPerHostOfTheSamePlace) {
  const Words both = {"job.ranks=6", "job.processes_per_host=4", "cluster.hosts=a,b,c"};
  EXPECT_EQ(HostsOf(both), (Words{"a:4", "b:2"}));
  EXPECT_THAT(ProblemsWith({"job.ranks=6", "job.processes_per_host=4"}), HasSubstr("each runs at most 4"));
  EXPECT_THAT(ProblemsWith({"job.ranks=6", "job.processes_per_host=cpu"}),
              HasSubstr("leave one of them out"));
}

TEST(Ranks, AndProcessesPerHostReplaceEachOtherAsGivenLater) {
  const TestFolder folder;
  const auto file =
      folder.Write("a.toml", "[job]\nprocesses_per_host = 2\n[cluster]\nhosts = [\"a\", \"b\"]\n");
  EXPECT_EQ(*GoodSets({"job.ranks=6"}, file).cluster.hosts, (Words{"a:3", "b:3"}));
  const auto other = folder.Write("b.toml", "[job]\nranks = 6\n[cluster]\nhosts = [\"a\", \"b\"]\n");
  const JobSpec spec = GoodSets({"job.processes_per_host=2"}, other);
  EXPECT_EQ(*spec.cluster.hosts, (Words{"a", "b"}));
  EXPECT_FALSE(spec.job.ranks.has());
}

TEST(Ranks, DivideByHostsThatNobodyNames) {
  const Words manual = {"cluster.connect=manual", "cluster.host_count=4"};
  Words even = manual, odd = manual;
  even.emplace_back("job.ranks=8");
  odd.emplace_back("job.ranks=9");
  EXPECT_EQ(*GoodSets(even).job.processes_per_host, 2);
  EXPECT_THAT(ProblemsWith(odd), HasSubstr("9 ranks are not a multiple of 4 hosts"));
}

TEST(Ranks, AreNotMoreThanAJobCanHaveHoweverTheyAreCounted) {
  std::string hosts;
  for (int i = 0; i < 1000; ++i) hosts += (i == 0 ? "cluster.hosts=h" : ",h") + std::to_string(i);
  const auto problem = [](const char* ranks, const char* count) {
    return HasSubstr(std::string(ranks) + " ranks on " + count + " hosts; a job has at most 1000000 ranks");
  };
  GoodSets({hosts, "job.processes_per_host=1000"});
  EXPECT_THAT(ProblemsWith({hosts, "job.processes_per_host=1001"}),
              AllOf(problem("1001000", "1000"), HasSubstr("--set cluster.hosts"),
                    HasSubstr("(job.processes_per_host = 1001, --set job.processes_per_host)")));
  std::string slots = hosts;
  for (std::size_t at = 0; (at = slots.find(",", at)) != slots.npos; at += 6) slots.insert(at, ":4096");
  EXPECT_THAT(ProblemsWith({slots}), problem("4091905", "1000"));
  GoodSets({slots, "job.ranks=1000000"});
  GoodSets({slots, "cluster.host_count=200"});
  const Words manual = {"cluster.connect=manual", "cluster.root=a:1", "cluster.host_count=65536"};
  Words many = manual;
  many.push_back("job.processes_per_host=4096");
  EXPECT_THAT(ProblemsWith(many), AllOf(problem("268435456", "65536"), HasSubstr("cluster.host_count")));
}

TEST(Ranks, AreNotMoreThanAHostCanHave) {
  EXPECT_THAT(ProblemsWith({"job.ranks=5000"}), HasSubstr("5000 ranks on one host; at most 4096"));
  EXPECT_THAT(ProblemsWith({"job.ranks=0"}), HasSubstr("job.ranks"));
}

}  // namespace
}  // namespace dtrun::spec

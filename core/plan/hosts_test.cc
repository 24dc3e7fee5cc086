#include "core/plan/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/this_machine.h"

namespace dtrun::plan {
namespace {

using ::testing::HasSubstr;

spec::JobSpec SettingsOf(std::vector<std::string> sets) {
  spec::Request request;
  request.command = {"true"};
  request.sets = std::move(sets);
  return spec::Load(request, {}).spec;
}

Hardware With(std::size_t cores, std::size_t gpus, const std::string& name = "x", int number = 0) {
  Hardware out;
  out.topology.cores.assign(cores, binding::Core{0, 0, {0}});
  out.gpus.resize(gpus);
  out.name = name;
  out.number = number;
  return out;
}

Result<std::vector<Host>> Place(std::vector<std::string> sets, const std::vector<Hardware>& reported = {}) {
  return PlaceRanks(SettingsOf(std::move(sets)), With(5, 0), reported);
}

TEST(PlaceRanks, IsThisMachineAloneWithoutAList) {
  const auto hosts = Place({"job.processes_per_host=3"});
  ASSERT_TRUE(hosts);
  ASSERT_EQ(hosts->size(), 1u);
  EXPECT_EQ(hosts->front().local_size, 3);
  EXPECT_EQ(hosts->front().cores, 5);
}

TEST(HasCluster, IsOfOtherHostsThanThisOne) {
  for (const char* here : {"localhost", "localhost:2", "127.0.0.1"})
    EXPECT_FALSE(HasCluster(SettingsOf({std::string("cluster.hosts=") + here}))) << here;
  EXPECT_FALSE(HasCluster(SettingsOf({"cluster.hosts=" + hosts::HostName() + ":2"})));
  EXPECT_FALSE(HasCluster(SettingsOf({})));
  for (const char* other : {"node0.invalid", "localhost,node0.invalid"})
    EXPECT_TRUE(HasCluster(SettingsOf({std::string("cluster.hosts=") + other}))) << other;
  EXPECT_TRUE(HasCluster(SettingsOf({"cluster.hosts=localhost", "cluster.connect=manual"})));
}

TEST(PlaceRanks, OfThisMachineByNameHasItsSlotsAndTakesNoGpuForGranted) {
  const auto hosts = Place({"cluster.hosts=localhost:3"});
  ASSERT_TRUE(hosts) << hosts.error().text;
  ASSERT_EQ(hosts->size(), 1u);
  EXPECT_EQ(hosts->front().name, "localhost");
  EXPECT_EQ(hosts->front().local_size, 3);
  EXPECT_THAT(Place({"cluster.hosts=localhost", "job.processes_per_host=gpu"}).error().text,
              HasSubstr("no GPU is visible"));
}

TEST(PlaceRanks, OfARootWithoutGpusCountsThoseOfTheHostsWhenTheyCome) {
  const auto draft = Place({"cluster.hosts=a:8,b", "job.processes_per_host=gpu"});
  ASSERT_TRUE(draft) << draft.error().text;
  EXPECT_EQ((*draft)[0].local_size, 8);
  EXPECT_EQ((*draft)[1].local_size, 1);
  EXPECT_THAT(Place({"job.processes_per_host=gpu"}).error().text, HasSubstr("no GPU is visible"));
}

TEST(PlaceRanks, NumbersRanksAlongTheList) {
  const auto hosts = Place({"cluster.hosts=node0,node1:4,[fe80::1]:2,[fe80::2]"});
  ASSERT_TRUE(hosts) << hosts.error().text;
  ASSERT_EQ(hosts->size(), 4u);
  EXPECT_EQ((*hosts)[0].local_size, 1);
  EXPECT_EQ((*hosts)[1].name, "node1");
  EXPECT_EQ((*hosts)[1].first_rank, 1);
  EXPECT_EQ((*hosts)[1].local_size, 4);
  EXPECT_EQ((*hosts)[2].name, "fe80::1");
  EXPECT_EQ((*hosts)[2].local_size, 2);
  EXPECT_EQ((*hosts)[3].name, "fe80::2");
  EXPECT_EQ((*hosts)[3].first_rank, 7);
}

TEST(PlaceRanks, CountsEachHostByWhatItOffers) {
  const auto hosts =
      Place({"cluster.hosts=a,b,c:1", "job.processes_per_host=auto", "cluster.oversubscribe=true"},
            {With(4, 0, "a", 0), With(64, 8, "b", 1), With(2, 0, "c", 2)});
  ASSERT_TRUE(hosts) << hosts.error().text;
  EXPECT_EQ((*hosts)[0].local_size, 4);
  EXPECT_EQ((*hosts)[1].local_size, 8);
  EXPECT_EQ((*hosts)[2].local_size, 2);
  const auto gpus =
      Place({"cluster.hosts=a,b", "job.processes_per_host=gpu"}, {With(4, 2, "a", 0), With(4, 0, "b", 1)});
  ASSERT_FALSE(gpus);
  EXPECT_THAT(gpus.error().text, HasSubstr("no GPU is visible on host b"));
}

TEST(PlaceRanks, RefusesMoreRanksThanSlots) {
  const auto hosts = Place({"cluster.hosts=a,b:2", "job.processes_per_host=3"});
  ASSERT_FALSE(hosts);
  EXPECT_THAT(hosts.error().text, HasSubstr("3 ranks on host b, which has 2 slots by --set cluster.hosts"));
  EXPECT_THAT(hosts.error().text, HasSubstr("cluster.oversubscribe"));
}

TEST(PlaceRanks, CallsHostsWithoutANameByTheirNumberUntilTheyHaveJoined) {
  const std::vector<std::string> sets = {"cluster.host_count=3", "cluster.connect=manual"};
  const auto awaited = Place(sets);
  ASSERT_TRUE(awaited) << awaited.error().text;
  EXPECT_EQ((*awaited)[2].name, "host2");
  const auto joined = Place(sets, {With(1, 0, "pod", 0), With(1, 0, "node7", 1), With(1, 0, "pod", 2)});
  ASSERT_TRUE(joined) << joined.error().text;
  EXPECT_EQ((*joined)[0].name, "pod");
  EXPECT_EQ((*joined)[1].name, "node7");
  EXPECT_EQ((*joined)[2].name, "pod#2");
}

TEST(PlaceRanks, LeavesOutHostsThatHaveNotCome) {
  const auto hosts = Place({"cluster.hosts=a,b:3,c:2"}, {With(4, 0, "a", 0), With(4, 0, "c", 2)});
  ASSERT_TRUE(hosts) << hosts.error().text;
  ASSERT_EQ(hosts->size(), 2u);
  EXPECT_EQ((*hosts)[1].name, "c");
  EXPECT_EQ((*hosts)[1].first_rank, 1);
  EXPECT_EQ((*hosts)[1].local_size, 2);
}

}  // namespace
}  // namespace dtrun::plan

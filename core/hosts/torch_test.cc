#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;

const Environment kVersion2 = {{"PET_NNODES", "3"},
                               {"PET_NPROC_PER_NODE", "auto"},
                               {"PET_NODE_RANK", "2"},
                               {"PET_MASTER_ADDR", "job-node-0-0.job"},
                               {"PET_MASTER_PORT", "29500"}};

Environment Changed(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

TEST(Kubeflow, Version2SaysEverythingWithPet) {
  const auto allocation = ReadKubeflow(kVersion2);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->count, (HostCount{3, 3}));
  EXPECT_EQ(allocation->own_index, 2);
  EXPECT_EQ(allocation->processes_per_host, "auto");
  EXPECT_EQ(allocation->root_address, "job-node-0-0.job");
  EXPECT_EQ(allocation->rank_port, 29500);
}

TEST(Kubeflow, TheMasterMayBeAnIpv6Address) {
  for (const char* text : {"fd00::2", "[fd00::2]"})
    EXPECT_EQ(ReadKubeflow(Changed(kVersion2, {{"PET_MASTER_ADDR", text}}))->root_address, "fd00::2") << text;
}

TEST(Kubeflow, Version1CountsPodsInRankAndProcessesInWorldSize) {
  const Environment pod =
      Changed(kVersion2, {{"PET_NPROC_PER_NODE", "4"}, {"RANK", "2"}, {"WORLD_SIZE", "12"}});
  ASSERT_TRUE(ReadKubeflow(pod).ok());
  ASSERT_TRUE(ReadKubeflow(Changed(pod, {{"PET_NPROC_PER_NODE", "gpu"}, {"WORLD_SIZE", "3"}})).ok());
  const auto other = ReadKubeflow(Changed(pod, {{"RANK", "8"}, {"WORLD_SIZE", "3"}}));
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().text, HasSubstr("RANK says 8, but PET_NODE_RANK says 2"));
  EXPECT_THAT(other.error().text,
              HasSubstr("WORLD_SIZE says 3, but PET_NNODES says 3 hosts, PET_NPROC_PER_NODE says 4"));
}

TEST(Kubeflow, AnElasticJobHasARangeOfHostsAndNoNumbers) {
  Environment pod = Changed(kVersion2, {{"PET_NNODES", "2:4"}});
  pod.erase("PET_NODE_RANK");
  const auto allocation = ReadKubeflow(pod);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->count, (HostCount{2, 4}));
  EXPECT_FALSE(allocation->own_index.has_value());
}

TEST(Kubeflow, MalformedVariablesAreNamed) {
  for (const char* count : {"0", "x", "4:2", "2:", ":2", "1:2:3"}) {
    const auto allocation = ReadKubeflow(Changed(kVersion2, {{"PET_NNODES", count}, {"PET_NODE_RANK", "0"}}));
    ASSERT_FALSE(allocation.ok()) << count;
    EXPECT_THAT(allocation.error().text, HasSubstr("is neither a number nor MIN:MAX"));
  }
  const auto outside =
      ReadKubeflow(Changed(kVersion2, {{"PET_NODE_RANK", "3"}, {"PET_NPROC_PER_NODE", "-2"}}));
  ASSERT_FALSE(outside.ok());
  EXPECT_THAT(outside.error().text, HasSubstr("PET_NODE_RANK says 3, PET_NNODES says 3"));
  EXPECT_THAT(outside.error().text, HasSubstr("PET_NPROC_PER_NODE='-2' is not a number"));
}

TEST(Torchrun, AWorkerPerHostKnowsItsGroup) {
  const Environment worker = {{"TORCHELASTIC_RUN_ID", "r"}, {"GROUP_RANK", "1"},   {"GROUP_WORLD_SIZE", "2"},
                              {"LOCAL_WORLD_SIZE", "1"},    {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"},
                              {"PET_NNODES", "7"}};
  const auto allocation = ReadTorchrun(worker);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->count, (HostCount{2, 2}));
  EXPECT_FALSE(ReadTorchrun(Changed(worker, {{"LOCAL_WORLD_SIZE", "2"}})).ok());
}

TEST(Torchrun, TakesPetVariablesToo) {
  EXPECT_EQ(ReadTorchrun(kVersion2)->own_index, 2);
  const auto nothing = ReadTorchrun({});
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().text, HasSubstr("TORCHELASTIC_RUN_ID is unset; GROUP_RANK is unset"));
}

}  // namespace
}  // namespace dtrun::hosts

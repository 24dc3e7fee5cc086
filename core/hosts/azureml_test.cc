#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;

Environment Mpi(int hosts) {
  Environment out = {{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", std::to_string(hosts)},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                     {"AZUREML_EXPERIMENT_ID", "e"}};
  if (hosts > 1) out["AZ_BATCH_MASTER_NODE"] = "10.0.0.4:6000";
  if (hosts == 1) out["AZ_BATCHAI_MPI_MASTER_NODE"] = "10.0.0.4";
  return out;
}

Environment With(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

// The four cases of Azure's own recipe.
TEST(AzureMl, TheMasterIsWhereTheRecipePutsIt) {
  for (const int hosts : {1, 2}) {
    for (const bool preset : {false, true}) {
      const auto allocation = ReadAzureMl(preset ? With(Mpi(hosts), {{"MASTER_PORT", "7000"}}) : Mpi(hosts));
      ASSERT_TRUE(allocation.ok()) << allocation.error().text;
      EXPECT_EQ(allocation->root_address, "10.0.0.4");
      EXPECT_EQ(allocation->rank_port, hosts == 1 ? 54965 : preset ? 7000 : 6105);
      EXPECT_EQ(allocation->count, (HostCount{hosts, hosts}));
      EXPECT_EQ(allocation->own_index, 0);
    }
  }
}

TEST(AzureMl, ASingleHostNeedsNoMaster) {
  Environment alone = Mpi(1);
  alone.erase("AZ_BATCHAI_MPI_MASTER_NODE");
  for (const Environment& job : {alone, Environment{{"NODE_RANK", "0"}, {"WORLD_SIZE", "1"}}}) {
    const auto allocation = ReadAzureMl(job);
    ASSERT_TRUE(allocation.ok()) << allocation.error().text;
    EXPECT_EQ(allocation->root_address, "localhost");
    EXPECT_EQ(allocation->count, (HostCount{1, 1}));
  }
}

TEST(AzureMl, IntelMpiSetsPmiVariables) {
  const auto allocation =
      ReadAzureMl({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"AZ_BATCH_MASTER_NODE", "[fe80::4]:1"}});
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->root_address, "fe80::4");
  const Environment bare = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"AZ_BATCH_MASTER_NODE", "fd00::4"}};
  EXPECT_EQ(ReadAzureMl(bare)->root_address, "fd00::4");
}

TEST(AzureMl, APyTorchJobHasNodeRank) {
  const Environment job = {{"NODE_RANK", "1"},  {"WORLD_SIZE", "2"},         {"RANK", "1"},
                           {"LOCAL_RANK", "0"}, {"MASTER_ADDR", "10.0.0.4"}, {"MASTER_PORT", "6105"}};
  const auto allocation = ReadAzureMl(job);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->rank_port, 6105);
  const auto several = ReadAzureMl(With(job, {{"RANK", "3"}, {"LOCAL_RANK", "1"}}));
  ASSERT_FALSE(several.ok());
  EXPECT_THAT(several.error().text, HasSubstr("RANK says 3, but NODE_RANK says otherwise"));
  EXPECT_THAT(several.error().text, HasSubstr("LOCAL_RANK says 1, but dtrun starts the ranks itself"));
}

TEST(AzureMl, SeveralProcessesOnAHostAndMissingVariablesAreNamed) {
  const auto several = ReadAzureMl(With(Mpi(2), {{"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}));
  ASSERT_FALSE(several.ok());
  EXPECT_THAT(several.error().text, HasSubstr("process count per node to 1"));
  Environment lacking = Mpi(2);
  lacking.erase("AZ_BATCH_MASTER_NODE");
  const auto missing = ReadAzureMl(lacking);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().text, HasSubstr("AZ_BATCH_MASTER_NODE is unset"));
}

}  // namespace
}  // namespace dtrun::hosts

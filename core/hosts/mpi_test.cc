#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

using ::testing::HasSubstr;

const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "3"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                              {"OMPI_COMM_WORLD_NODE_RANK", "0"}};

TEST(OpenMpi, ARankPerHostIsTheHostsNumber) {
  const auto allocation = ReadOpenMpi(kOpenMpi);
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->own_index, 1);
  EXPECT_EQ(allocation->count, (HostCount{3, 3}));
  EXPECT_TRUE(allocation->hosts.empty());
}

TEST(OpenMpi, SeveralProcessesOnAHostAreRefused) {
  Environment environment = kOpenMpi;
  environment["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  const auto allocation = ReadOpenMpi(environment);
  ASSERT_FALSE(allocation.ok());
  EXPECT_THAT(allocation.error().text, HasSubstr("OMPI_COMM_WORLD_LOCAL_SIZE says 2 processes on this host"));
  EXPECT_THAT(allocation.error().text, HasSubstr("--map-by ppr:1:node"));
}

TEST(OpenMpi, NamesAllThatIsMissing) {
  const auto allocation = ReadOpenMpi({});
  ASSERT_FALSE(allocation.ok());
  EXPECT_THAT(allocation.error().text,
              HasSubstr("OMPI_COMM_WORLD_RANK is unset; OMPI_COMM_WORLD_SIZE is unset"));
}

TEST(OpenMpi, ARankOutsideOfTheWorldIsRefused) {
  Environment environment = kOpenMpi;
  environment["OMPI_COMM_WORLD_RANK"] = "3";
  const auto allocation = ReadOpenMpi(environment);
  ASSERT_FALSE(allocation.ok());
  EXPECT_THAT(allocation.error().text, HasSubstr("OMPI_COMM_WORLD_RANK says 3, OMPI_COMM_WORLD_SIZE says 3"));
}

TEST(Pmi, ReadsRankAndSize) {
  const auto allocation = ReadPmi({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}});
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->own_index, 0);
  EXPECT_FALSE(ReadPmi({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}).ok());
}

TEST(MpiJob, TheLauncherHasAHostfile) {
  const auto allocation =
      ReadMpiJob({{"K_MPI_JOB_ROLE", "launcher"}, {"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"}});
  ASSERT_TRUE(allocation.ok()) << allocation.error().text;
  EXPECT_EQ(allocation->hostfile, "/etc/mpi/hostfile");
  EXPECT_FALSE(allocation->own_index.has_value());
}

TEST(MpiJob, AWorkerAndAMissingHostfileAreRefused) {
  const auto worker = ReadMpiJob({{"K_MPI_JOB_ROLE", "worker"}});
  ASSERT_FALSE(worker.ok());
  EXPECT_THAT(worker.error().text, HasSubstr("K_MPI_JOB_ROLE says 'worker'"));
  EXPECT_THAT(worker.error().text, HasSubstr("I_MPI_HYDRA_HOST_FILE are unset"));
}

}  // namespace
}  // namespace dtrun::hosts

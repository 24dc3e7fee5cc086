#include "core/environments/outer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::environments {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

bool IsWithheld(std::string_view name) { return MatchesAny(name, Withheld()); }

TEST(Withheld, HoldsWhatSaysWhoARankIs) {
  for (const char* name : {"RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "GROUP_RANK",
                           "TORCHELASTIC_RUN_ID",
                           "OMPI_COMM_WORLD_LOCAL_RANK",
                           "OMPI_MCA_orte_local_daemon_uri",
                           "PMIX_RANK",
                           "PMIX_SERVER_URI41",
                           "PMIX_ID",
                           "PMIX_DSTORE_ESH_BASE_PATH",
                           "OMPI_MCA_pmix",
                           "PMI_RANK",
                           "PMI_FD",
                           "MPI_LOCALRANKID",
                           "SLURM_PROCID",
                           "SLURM_NTASKS",
                           "SLURM_STEP_NODELIST",
                           "HOROVOD_RANK",
                           "HOROVOD_CROSS_SIZE",
                           "TF_CONFIG",
                           "JSM_NAMESPACE_RANK",
                           "MV2_COMM_WORLD_RANK"}) {
    EXPECT_TRUE(IsWithheld(name)) << name;
  }
}

TEST(Withheld, LeavesSettingsAlone) {
  for (const char* name :
       {"PATH", "OMPI_MCA_btl_tcp_if_include", "OMPI_ALLOW_RUN_AS_ROOT", "PMIX_MCA_gds", "SLURM_JOB_ID",
        "SLURM_JOB_NODELIST", "SLURM_CPUS_PER_TASK", "NCCL_SOCKET_IFNAME", "AZUREML_EXPERIMENT_ID",
        "AZ_BATCH_MASTER_NODE", "PET_NNODES", "HOROVOD_FUSION_THRESHOLD", "HOROVOD_CONTROLLER", "RANKS",
        "DTRUN_RANK", "TORCHELASTIC_ENABLE_FILE_TIMER", "CLUSTER_SPEC"}) {
    EXPECT_FALSE(IsWithheld(name)) << name;
  }
}

TEST(OuterNotes, NameEachOuterLauncherOnce) {
  EXPECT_THAT(
      OuterNotes({{"OMPI_COMM_WORLD_RANK", "1"},
                  {"OMPI_COMM_WORLD_SIZE", "4"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                  {"OMPI_UNIVERSE_SIZE", "4"},
                  {"PMIX_RANK", "1"},
                  {"RANK", "3"},
                  {"WORLD_SIZE", "4"}}),
      ElementsAre(
          "RANK=3, WORLD_SIZE=4 of an outer launcher: not passed on to the ranks",
          "OMPI_COMM_WORLD_LOCAL_RANK=1, OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=4 and 2 more of "
          "an outer Open MPI or PMIx server: not passed on to the ranks"));
}

TEST(OuterNotes, LeaveLongValuesOut) {
  EXPECT_THAT(
      OuterNotes({{"TF_CONFIG", std::string(100, 'x')}}),
      ElementsAre("TF_CONFIG of an outer TensorFlow job (job.dialects = [\"tf-config\"] writes one for the "
                  "ranks): not passed on to the ranks"));
}

TEST(OuterNotes, SayNothingOfACleanEnvironment) {
  EXPECT_THAT(OuterNotes({{"PATH", "/bin"}, {"SLURM_JOB_ID", "7"}}), IsEmpty());
}

TEST(UnusedAllocation, IsToldOfSeveralHosts) {
  EXPECT_EQ(UnusedAllocation({{"SLURM_JOB_ID", "7"}, {"SLURM_NNODES", "1"}}), "");
  EXPECT_THAT(UnusedAllocation({{"SLURM_JOB_ID", "7"}, {"SLURM_NNODES", "2"}}),
              AllOf(HasSubstr("Slurm's allocation 7 of 2 hosts"), HasSubstr("--set cluster.from=slurm")));
}

TEST(OneOfSeveral, SaysHowTheyBecomeOneJob) {
  EXPECT_EQ(OneOfSeveral({}), "");
  EXPECT_EQ(OneOfSeveral({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMI_SIZE", "one"}, {"SLURM_NTASKS", "4"}}), "");
  EXPECT_THAT(OneOfSeveral({{"OMPI_COMM_WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("mpirun has started 2 of this command"),
                    HasSubstr("cluster.from = \"openmpi\""), HasSubstr("mpirun --map-by ppr:1:node")));
  EXPECT_THAT(OneOfSeveral({{"SLURM_STEP_NUM_TASKS", "8"}, {"PMI_SIZE", "8"}}),
              HasSubstr("cluster.from = \"slurm\""));
  EXPECT_THAT(OneOfSeveral({{"PMI_SIZE", "3"}}), HasSubstr("cluster.from = \"pmi\""));
  EXPECT_EQ(OneOfSeveral({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
            "");  // as an operator of Kubernetes sets them
  EXPECT_EQ(OneOfSeveral({{"DTRUN_RANK", "0"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");
  EXPECT_THAT(OneOfSeveral({{"DTRUN_RANK", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("rank 1 of 2 of an outer dtrun"));
  EXPECT_THAT(OneOfSeveral({{"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "0"}, {"WORLD_SIZE", "8"}}),
              HasSubstr("rank 0 of 8 of an outer torchrun"));
}

}  // namespace
}  // namespace dtrun::environments

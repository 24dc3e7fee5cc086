#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tools/dtrun/command_line/flags.h"

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Set = std::map<std::string, std::string>;

const Started kPerProcess{"per-process", ""}, kMpirunJob{"mpirun", ""};

// The line for one variable; empty: none.
std::string Of(const std::string& name, const std::string& value, const Started& job = kPerProcess) {
  Set environment{{name, value}};
  if (name.starts_with("SLURM_") || name.starts_with("SRUN_")) environment.emplace("SLURM_JOB_ID", "7");
  const auto lines = UnusedVariables(environment, job);
  EXPECT_LE(lines.size(), 1u) << name;
  return lines.empty() ? "" : lines.front();
}

TEST(UnusedVariables, OfMpirunItselfAreToldWithWhatToSet) {
  EXPECT_EQ(Of("OMPI_MCA_plm_rsh_agent", "ssh -q : rsh"),
            "OMPI_MCA_plm_rsh_agent has no effect: mpirun reads it, and dtrun starts the ranks; in its "
            "place: --set "
            "'cluster.remote_shell=[\"ssh\", \"-q\"]'");
  EXPECT_THAT(Of("OMPI_MCA_plm_rsh_args", "-p 2222"),
              HasSubstr("write --set 'cluster.remote_shell=[\"ssh\""));
  EXPECT_THAT(Of("OMPI_MCA_hwloc_base_binding_policy", "numa"),
              HasSubstr("in its place: --set job.bind=per-numa"));
  EXPECT_THAT(Of("PRTE_MCA_hwloc_default_binding_policy", "core"),
              HasSubstr("in its place: --set job.bind=core"));
  EXPECT_THAT(Of("OMPI_MCA_rmaps_base_mapping_policy", "node"),
              HasSubstr("ranks fill one host after another"));
  EXPECT_THAT(Of("OMPI_MCA_rmaps_base_oversubscribe", "1"), HasSubstr("--set cluster.oversubscribe=1"));
  EXPECT_THAT(Of("OMPI_MCA_orte_default_hostfile", "my hosts"),
              HasSubstr("in its place: --hostfile 'my hosts'"));
  EXPECT_THAT(Of("OMPI_MCA_orte_abort_on_non_zero_status", "0"), HasSubstr("a rank that fails ends the job"));
  EXPECT_EQ(Of("OMPI_MCA_orte_abort_on_non_zero_status", "1"), "");
}

TEST(UnusedVariables, WithNothingInTheirPlaceShareALine) {
  EXPECT_THAT(
      UnusedVariables({{"OMPI_MCA_plm_base_verbose", "5"},
                       {"OMPI_MCA_iof_base_verbose", "5"},
                       {"PRTE_MCA_anything", "1"},
                       {"HYDRA_PROXY_RETRY_COUNT", "3"},
                       {"I_MPI_HYDRA_BRANCH_COUNT", "2"}},
                      kPerProcess),
      ElementsAre(
          "OMPI_MCA_iof_base_verbose, OMPI_MCA_plm_base_verbose, PRTE_MCA_anything have no effect: mpirun "
          "reads them, and dtrun starts the ranks",
          "HYDRA_PROXY_RETRY_COUNT, I_MPI_HYDRA_BRANCH_COUNT have no effect: mpiexec reads them, and "
          "dtrun starts the ranks"));
}

TEST(UnusedVariables, AreNotThoseThatRanksRead) {
  for (const char* name : {"OMPI_MCA_btl", "OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_pml",
                           "OMPI_MCA_coll_hcoll_enable", "PMIX_MCA_gds", "I_MPI_FABRICS", "I_MPI_PIN",
                           "MPICH_PORT_RANGE", "HYDRA_ENV", "PATH", "SLURM_JOB_NODELIST"})
    EXPECT_EQ(Of(name, "x"), "") << name;
}

TEST(UnusedVariables, OfHydraAreToldWithWhatToSet) {
  EXPECT_THAT(Of("HYDRA_HOST_FILE", "hosts"),
              AllOf(StartsWith("HYDRA_HOST_FILE=hosts has no effect: mpiexec reads it"),
                    HasSubstr("in its place: --hostfile hosts")));
  EXPECT_THAT(Of("I_MPI_HYDRA_IFACE", "ib0"), HasSubstr("in its place: --set network.interface=ib0"));
  EXPECT_THAT(Of("HYDRA_BINDING", "numa"), HasSubstr("in its place: --set job.bind=per-numa"));
  EXPECT_THAT(Of("I_MPI_PERHOST", "4"), HasSubstr("in its place: --processes-per-host 4"));
  EXPECT_THAT(Of("MPIEXEC_TIMEOUT", "60"), HasSubstr("write --time-limit 60s"));
  EXPECT_THAT(Of("HYDRA_LAUNCHER_EXEC", "/bin/ssh"), HasSubstr("cluster.remote_shell"));
}

TEST(UnusedVariables, ReachTheMpirunThatTheLauncherStarts) {
  for (const char* name : {"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_rmaps_base_oversubscribe", "PRTE_MCA_anything",
                           "HYDRA_HOST_FILE", "I_MPI_HYDRA_IFACE"})
    EXPECT_EQ(Of(name, "x", kMpirunJob), "") << name;
  EXPECT_EQ(Of("OMPI_MCA_orte_tmpdir_base", "/fast disk", kMpirunJob),
            "OMPI_MCA_orte_tmpdir_base does not reach mpirun, as variables that an outer mpirun sets are "
            "withheld; in its "
            "place: --set 'launcher.options.arguments=[\"--mca\", \"orte_tmpdir_base\", \"/fast disk\"]'");
}

TEST(UnusedVariables, AreNotThoseOfAnOuterLauncher) {
  for (const char* outer : {"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_RANK", "DTRUN_JOB_KEY"})
    EXPECT_THAT(UnusedVariables({{outer, "1"}, {"OMPI_MCA_plm", "rsh"}, {"HYDRA_IFACE", "lo"}}, kPerProcess),
                IsEmpty());
  EXPECT_THAT(
      UnusedVariables({{"OMPI_MCA_orte_default_hostfile", "f"}, {"OMPI_MCA_plm_rsh_agent", "kubexec"}},
                      {"per-process", "mpijob"}),
      IsEmpty());
  EXPECT_THAT(UnusedVariables({{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_CPU_BIND", "quiet"}},
                              kPerProcess),
              IsEmpty());
  EXPECT_THAT(UnusedVariables({{"SLURM_HINT", "nomultithread"}}, kPerProcess), IsEmpty()) << "no allocation";
}

TEST(UnusedVariables, OfSrunAreToldWithWhatToSet) {
  EXPECT_EQ(
      Of("SLURM_HINT", "nomultithread"),
      "SLURM_HINT=nomultithread has no effect: srun reads it, and dtrun starts the ranks; choose the ranks' "
      "processors with --set job.bind=compact, spread or none");
  EXPECT_THAT(Of("SLURM_TIMELIMIT", "60"), HasSubstr("--time-limit"));
  EXPECT_THAT(Of("SLURM_OVERCOMMIT", "1"), HasSubstr("in its place: --set cluster.oversubscribe=true"));
  EXPECT_THAT(Of("SLURM_TASK_PROLOG", "/x"), HasSubstr("dtrun starts the ranks; have the ranks run it"));
  EXPECT_THAT(Of("SLURM_REMOTE_CWD", "/x"), HasSubstr("in its place: --set job.cwd=/x"));
  EXPECT_THAT(Of("SRUN_CPUS_PER_TASK", "8"), HasSubstr("job.env.OMP_NUM_THREADS=8"));
  EXPECT_THAT(Of("SLURM_EXPORT_ENV", "NONE"), HasSubstr("ranks have the environment that dtrun has"));
  EXPECT_EQ(Of("SLURM_EXPORT_ENV", "ALL"), "");
}

// All variables of srun(1) in Slurm 22.05.8.
TEST(UnusedVariables, OfSrunAreToldUnlessTheAllocationHasThem) {
  for (const char* name :
       {"SLURM_BCAST",          "SLURM_COMPRESS",          "SLURM_CPU_BIND",   "SLURM_EPILOG",
        "SLURM_GPU_BIND",       "SLURM_MEM_BIND",          "SLURM_NO_KILL",    "SLURM_NTASKS_PER_CORE",
        "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_SOCKET", "SLURM_OPEN_MODE",  "SLURM_PROLOG",
        "SLURM_RESV_PORTS",     "SLURM_SEND_LIBS",         "SLURM_STDERRMODE", "SLURM_STDINMODE",
        "SLURM_STDOUTMODE",     "SLURM_TASK_EPILOG",       "SLURM_THREADS",    "SLURM_WAIT",
        "SRUN_CONTAINER",       "SRUN_EXPORT_ENV"})
    EXPECT_THAT(Of(name, "1"), StartsWith(std::string(name) + "=1 has no effect: srun reads it")) << name;
  for (const char* granted :
       {"SLURM_ACCOUNT",         "SLURM_CONSTRAINT",    "SLURM_CPUS_PER_GPU",  "SLURM_CPUS_PER_TASK",
        "SLURM_EXCLUSIVE",       "SLURM_GPUS",          "SLURM_GPUS_PER_NODE", "SLURM_GRES",
        "SLURM_JOB_NUM_NODES",   "SLURM_KILL_BAD_EXIT", "SLURM_LABELIO",       "SLURM_MEM_PER_CPU",
        "SLURM_MEM_PER_NODE",    "SLURM_MPI_TYPE",      "SLURM_NNODES",        "SLURM_NTASKS",
        "SLURM_NTASKS_PER_NODE", "SLURM_PARTITION",     "SLURM_QOS",           "SLURM_UNBUFFEREDIO"})
    EXPECT_EQ(Of(granted, "1"), "") << granted;
}

TEST(UnusedVariables, OfTorchrunAreToldOnceUnlessSomebodyReadsThem) {
  const Set pets{{"PET_NNODES", "2"}, {"PET_NPROC_PER_NOD", "4"}};
  EXPECT_THAT(UnusedVariables(pets, kPerProcess),
              ElementsAre(StartsWith(
                  "PET_NNODES, PET_NPROC_PER_NOD have no effect: torchrun reads them, and so does")));
  for (const Started& job :
       {Started{"per-node", ""}, Started{"per-process", "kubeflow"}, Started{"per-process", "torchrun"}})
    EXPECT_THAT(UnusedVariables(pets, job), IsEmpty());
}

}  // namespace
}  // namespace dtrun::cli

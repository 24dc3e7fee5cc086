#include "tools/dtrun/command_line/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtrun::cli {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ForeignFlags, MeanTheSameUnderBothSpellings) {
  for (const char* flag : {"--nproc_per_node", "--nproc-per-node", "-ppn", "--ntasks-per-node"}) {
    ASSERT_NE(FindForeignFlag(flag), nullptr) << flag;
    EXPECT_EQ(FindForeignFlag(flag)->words, "--processes-per-host {}") << flag;
  }
  EXPECT_EQ(FindForeignFlag("-np")->words, "--ranks {}");
  EXPECT_EQ(FindForeignFlag("--num_processes")->words, "--ranks {}");
}

// The last of dtrun's words for `flag`, or the line of a refusal or an error.
std::string Read(const std::string& flag, const std::vector<std::string>& values = {}) {
  const ForeignFlag& row = *FindForeignFlag(flag);
  EXPECT_LE(values.size(), static_cast<std::size_t>(ValuesOf(row, flag))) << flag;
  const auto read = ReadForeign(row, flag, values);
  if (!read) return read.error().text;
  EXPECT_FALSE(read->text.empty()) << flag;
  if (read->effect == ForeignWords::Effect::kRefused) return FlagOf(row, flag) + "; " + read->text;
  return read->words.empty() ? "" : read->words.back();
}

TEST(ForeignFlags, ParametersOfMpirunItselfAreNoVariablesOfTheRanks) {
  EXPECT_EQ(Read("--mca", {"plm_rsh_agent", "/opt/agent -q : rsh"}),
            "cluster.remote_shell=[\"/opt/agent\", \"-q\"]");
  EXPECT_THAT(Read("--mca", {"plm_rsh_args", "-p 12345"}), HasSubstr("'-p 12345'"));
  EXPECT_EQ(Read("--mca", {"hwloc_base_binding_policy", "core"}), "job.bind=core");
  EXPECT_THAT(Read("--prtemca", {"rmaps_default_mapping_policy", "numa"}),
              HasSubstr("ranks fill one host after another"));
  EXPECT_EQ(Read("--mca", {"orte_abort_on_non_zero_status", "1"}), "");
  EXPECT_THAT(Read("--mca", {"orte_abort_on_non_zero_status", "0"}),
              HasSubstr("a rank that fails ends the job"));
  // From `ompi_info --param all all` and `prte_info`: each framework of mpirun and its daemons.
  for (const char* name :
       {"plm", "plm_base_verbose", "ras_base_display_alloc", "rmaps_base_no_schedule_local",
        "orte_tmpdir_base", "orte_keep_fqdn_hostnames", "prte_silence_shared_fs",
        "hwloc_base_mem_alloc_policy", "iof_base_redirect", "odls_base_sigkill_timeout", "oob_tcp_if_include",
        "routed", "errmgr_base_verbose", "state_base_verbose"})
    EXPECT_EQ(Read("--mca", {name, "1"}), "") << name;
  EXPECT_EQ(Read("--prtemca", {"anything", "1"}), "");
  EXPECT_EQ(Read("--pmixmca", {"gds", "hash"}), "job.env.PMIX_MCA_gds=hash");
  for (const std::string name :
       {"btl", "btl_tcp_if_include", "pml", "coll_hcoll_enable", "osc", "io", "opal_event"})
    EXPECT_EQ(Read("--mca", {name, "x"}), "job.env.OMPI_MCA_" + name + "=x");
}

TEST(ForeignFlags, AreReadAsTheOptionThatIsTheSame) {
  EXPECT_EQ(Read("--max_restarts", {"3"}), "restart.max=3");
  EXPECT_EQ(Read("--log_dir", {"logs"}), "logs.dir=logs");
  EXPECT_EQ(Read("--wdir", {"/tmp"}), "job.cwd=/tmp");
  EXPECT_EQ(Read("--bind-to", {"core"}), "job.bind=core");
  EXPECT_EQ(Read("--bind-to", {"none"}), "job.bind=none");
  EXPECT_EQ(Read("--mpi", {"pmix"}), "job.pmi=pmix");
  EXPECT_EQ(Read("--mca", {"pml", "ucx"}), "job.env.OMPI_MCA_pml=ucx");
  EXPECT_EQ(Read("--backend", {"gloo"}), "backend.name=gloo");
  EXPECT_EQ(Read("--gloo"), "job.dialects=horovod");
  EXPECT_EQ(Read("--oversubscribe"), "cluster.oversubscribe=true");
  EXPECT_EQ(Read("-x", {"A=1"}), "job.env.A=1");
  EXPECT_EQ(Read("-x", {"PATH"}), "");
  EXPECT_EQ(Read("-x", {"DTRUN_TEST_IS_NOT_SET"}), "");
  EXPECT_EQ(Read("-genv", {"A", "1"}), "job.env.A=1");
  EXPECT_EQ(Read("--pernode"), "job.processes_per_host=1");
  EXPECT_EQ(Read("--export", {"ALL"}), "");
  EXPECT_EQ(Read("--export", {"ALL,A=1,B"}), "job.env.A=1");
  EXPECT_EQ(Read("--timeline-filename", {"t.json"}), "job.env.HOROVOD_TIMELINE=t.json");
  EXPECT_EQ(Read("--disable-cache"), "job.env.HOROVOD_CACHE_CAPACITY=0");
  for (const char* flag : {"--standalone", "--allow-run-as-root", "--tag-output", "--report-bindings"}) {
    EXPECT_EQ(Read(flag), "") << flag;
  }
  for (const char* flag : {"--rdzv_backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv_conf"}) {
    EXPECT_EQ(Read(flag, {"x"}), "") << flag;
  }
}

TEST(ForeignFlags, ANumberOfHostsIsOne) {
  for (const char* flag : {"--nnodes", "--nodes", "--num_machines", "--num-nodes"})
    EXPECT_EQ(Read(flag, {"1"}), "1") << flag;
  EXPECT_EQ(Read("--nnodes", {"2:2"}), "2");
  EXPECT_THAT(Read("--nnodes", {"1:4"}), AllOf(HasSubstr("dtrun torchrun --nnodes"), HasSubstr("min_hosts")));
  EXPECT_THAT(Read("--nodes", {"a,b"}),
              HasSubstr("--nodes is a flag of torchrun, srun, accelerate and deepspeed"));
}

TEST(ForeignFlags, MeanWhatTheirLauncherMeans) {
  EXPECT_EQ(FindForeignFlag("-N", "mpirun")->words, "--processes-per-host {}");
  EXPECT_EQ(FindForeignFlag("-N", "srun"), nullptr) << "dtrun's own means the same";
  EXPECT_EQ(FindForeignFlag("-N"), nullptr);
  EXPECT_EQ(FindForeignFlag("-c", "mpirun")->words, "--ranks {}");
  EXPECT_EQ(FindForeignFlag("-x")->reading, Reading::kVariable);
  EXPECT_EQ(FindForeignFlag("-x", "srun")->reading, Reading::kRefused);
  EXPECT_EQ(FindForeignFlag("--config_file")->launchers, "accelerate");
  EXPECT_EQ(FindForeignFlag("--config-file", "horovodrun")->launchers, "horovodrun");
  EXPECT_EQ(FindForeignFlag("--cpu")->reading, Reading::kRefused);
  EXPECT_EQ(FindForeignFlag("--cpu", "accelerate")->words, "--set job.env.ACCELERATE_USE_CPU=true");
  EXPECT_EQ(FindForeignFlag("-e")->words, "--set cluster.exclude={}");
  EXPECT_EQ(FindForeignFlag("-e", "srun")->reading, Reading::kUnread);
  EXPECT_EQ(FindForeignFlag("--nnodes", "mpirun"), FindForeignFlag("--nnodes")) << "another's is still one";
}

TEST(ForeignFlags, OfOpenMpiHaveOneDashOrTwo) {
  for (const char* flag : {"-timestamp-output", "--timestamp-output", "-bind-to", "-use-hwthread-cpus"})
    EXPECT_NE(FindForeignFlag(flag), nullptr) << flag;
  EXPECT_EQ(FindForeignFlag("-nnodes"), nullptr) << "argparse's have two";
}

TEST(ForeignFlags, ThatDtrunDoesNotReadSaySo) {
  EXPECT_EQ(Read("--timestamp-output"), "output.timestamps=true");
  EXPECT_EQ(Read("--xml"), "--xml is a flag of mpirun that dtrun does not read; leave it out");
  EXPECT_THAT(Read("--use-hwthread-cpus"),
              HasSubstr("a flag of mpirun that dtrun does not read; leave it out; "));
  EXPECT_THAT(Read("--npersocket", {"2"}), HasSubstr("a flag of mpirun; --processes-per-host N"));
  for (const char* flag : {"--cpus-per-rank", "--cpus-per-proc"})
    EXPECT_THAT(Read(flag, {"4"}), AllOf(HasSubstr("a flag of mpirun; "), HasSubstr("OMP_NUM_THREADS=4;")));
  EXPECT_THAT(Read("--config_file"),
              HasSubstr("a flag of accelerate that dtrun does not read; write what it"));
  EXPECT_THAT(Read("--use_deepspeed"),
              HasSubstr("a flag of accelerate that dtrun does not read; leave it out"));
  EXPECT_THAT(Read("--fsdp_offload_params"), HasSubstr("fsdp_plugin"));
  EXPECT_EQ(Read("--no_local_rank"), "");
  EXPECT_THAT(Read("--timeout", {"60"}),
              AllOf(HasSubstr("a flag of mpirun"), HasSubstr("write --time-limit 60s")));
}

TEST(ForeignFlags, OfANameAndAValueNeedBoth) {
  EXPECT_EQ(Read("--mca", {"btl"}), "--mca takes a name and a value: --mca btl VALUE");
  EXPECT_EQ(
      Read("--mca", {"btl", "-n"}),
      "--mca takes a name and a value: --mca btl VALUE; if '-n' is the value: --set job.env.OMPI_MCA_btl=-n");
  EXPECT_EQ(Read("--mca", {"-n"}), "--mca takes a name and a value: --mca NAME VALUE");
  EXPECT_EQ(Read("-genv", {"A", "-1"}), "job.env.A=-1");
}

TEST(ForeignFlags, HaveANextStepWhereNothingIsTheSame) {
  EXPECT_THAT(Read("--partition"), HasSubstr("sbatch"));
  EXPECT_THAT(Read("-p"), AllOf(HasSubstr("srun and horovodrun"), HasSubstr("sbatch"), HasSubstr("2222")));
  EXPECT_THAT(Read("-t"), AllOf(HasSubstr("--time-limit DURATION"), HasSubstr("--tee")));
  EXPECT_THAT(Read("--time"), HasSubstr("--time-limit DURATION; "));
  EXPECT_THAT(Read("-r"), HasSubstr("dtrun torchrun"));
  EXPECT_THAT(Read("--cpu-bind"), HasSubstr("job.bind"));
  EXPECT_THAT(Read("--deepspeed"), HasSubstr("go after it"));
  EXPECT_THAT(Read("--mpi", {"pmi2"}), AllOf(HasSubstr("job.pmi=pmi1"), HasSubstr("launcher.name=mpirun")));
  EXPECT_THAT(Read("--map-by", {"socket"}),
              HasSubstr("--map-by is a flag of mpirun; ranks fill one host after another"));
  EXPECT_THAT(Read("--map-by", {"ppr:2:socket"}), HasSubstr("--map-by is a flag of mpirun; "));
  EXPECT_THAT(Read("--bind-to", {"l3cache"}),
              HasSubstr("dtrun does not read 'l3cache', only core, hwthread, numa"));
  EXPECT_THAT(Read("--export", {"NONE"}), HasSubstr("job.env.NAME=VALUE"));
  EXPECT_THAT(Read("--ssh-port"),
              HasSubstr("a flag of horovodrun and deepspeed; write --set 'cluster.remote_shell=["));
  EXPECT_THAT(Read("--check-build"), HasSubstr("run horovodrun --check-build"));
  EXPECT_THAT(Read("--prefix"), HasSubstr("a flag of mpirun; leave it out"));
  EXPECT_THAT(Read("--dry-run"), HasSubstr("write dtrun plan; it shows hosts"));
  for (const char* flag : {"-o", "--output", "--error", "--open-mode"})
    EXPECT_THAT(Read(flag),
                HasSubstr("a flag of srun that dtrun does not read; leave it out: the run's folder"))
        << flag;
}

TEST(ForeignFlags, ATimeOfSlurmIsADuration) {
  const std::pair<const char*, const char*> times[] = {
      {"30", "30m"},    {"2:30", "150s"},   {"2:00:00", "120m"},     {"1-2", "1560m"},  {"1-0:0:1", "86401s"},
      {"", "DURATION"}, {"-1", "DURATION"}, {"1:2:3:4", "DURATION"}, {"2h", "DURATION"}};
  for (const auto& [time, duration] : times)
    EXPECT_THAT(Read("--time", {time}), HasSubstr(std::string("write --time-limit ") + duration + ";"))
        << time;
  EXPECT_THAT(Read("-t", {"5"}), HasSubstr("write --time-limit 5m; it is srun's time limit"));
}

TEST(ForeignFlags, AreRefusedWithTheValueThatWasGiven) {
  EXPECT_THAT(Read("--start-timeout", {"600"}), HasSubstr("write --set cluster.join_timeout=600s"));
  EXPECT_THAT(Read("--timeout", {"2m"}), HasSubstr("backend.timeout=2m limits an operation"));
  EXPECT_THAT(Read("--fusion-threshold-mb", {"64"}), HasSubstr("_FUSION_THRESHOLD=67108864;"));
  EXPECT_THAT(Read("--log-level", {"DEBUG"}), HasSubstr("HOROVOD_LOG_LEVEL=DEBUG;"));
  EXPECT_THAT(Read("--ssh-port", {"2200"}), HasSubstr(R"(=["ssh","-p","2200"]')"));
  EXPECT_THAT(Read("--ssh-identity-file", {"~/.ssh/k"}), HasSubstr(R"(=["ssh","-i","~/.ssh/k"]')"));
  EXPECT_THAT(Read("--cpus-per-task", {"4"}), HasSubstr("OMP_NUM_THREADS=4;"));
  EXPECT_THAT(Read("--nproc", {"4"}), AllOf(HasSubstr("-n 4 "), HasSubstr("write --processes-per-host 4;")));
  EXPECT_THAT(Read("--port", {"29500"}), HasSubstr("job.master_port=29500"));
  EXPECT_THAT(Read("--main-process-port", {"29500"}), HasSubstr("job.master_port=29500"));
  for (const char* flag : {"--node-rank", "--machine-rank"})
    EXPECT_THAT(Read(flag, {"3"}), HasSubstr("--host-index 3")) << flag;
  EXPECT_THAT(Read("--prefix", {"/opt/mpi"}), HasSubstr("LD_LIBRARY_PATH=/opt/mpi/lib"));
}

TEST(ForeignFlags, AreOfferedWhereTheyAreRead) {
  EXPECT_THAT(ForeignNames(), AllOf(Contains("--nproc-per-node"), Contains("--standalone")));
  EXPECT_THAT(ForeignNames(), Not(AnyOf(Contains("--module"), Contains("--partition"))));
}

TEST(ForeignFlags, TakeAsManyWordsAsTheLauncherTakes) {
  const auto values = [](const char* flag, const char* of = "") {
    return ValuesOf(*FindForeignFlag(flag, of), flag);
  };
  for (const char* flag : {"--xml", "--no_python", "-debug-devel", "--dynamo_use_dynamic", "-G"})
    EXPECT_EQ(values(flag), flag == std::string("-G") ? 1 : 0) << flag;
  for (const char* flag : {"--map-by", "-xterm", "--fsdp_version", "--dynamo_mode", "--rdzv_id", "--gpu_ids"})
    EXPECT_EQ(values(flag), 1) << flag;
  EXPECT_EQ(values("-mca"), 2);
  EXPECT_EQ(values("-H", "srun"), 0);
  EXPECT_EQ(values("-H", "deepspeed"), 1);
}

TEST(ForeignFlags, AreNotFoundByAPart) {
  EXPECT_EQ(FindForeignFlag("--no"), nullptr);
  EXPECT_EQ(FindForeignFlag("-"), nullptr);
  EXPECT_EQ(FindForeignFlag(""), nullptr);
  EXPECT_EQ(FindForeignFlag("--epochs"), nullptr);
}

}  // namespace
}  // namespace dtrun::cli

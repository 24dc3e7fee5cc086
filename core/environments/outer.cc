#include "core/environments/outer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/text.h"

namespace dtrun::environments {
namespace {

// Variables of one kind of outer launcher. The note quotes the first ones.
struct Family {
  std::string_view whose, patterns;  // patterns: separated by spaces
};

constexpr Family kFamilies[] = {
    {"an outer launcher",
     "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE LOCAL_SIZE NODE_RANK GROUP_RANK GROUP_WORLD_SIZE "
     "ROLE_RANK ROLE_WORLD_SIZE ROLE_NAME CROSS_RANK CROSS_SIZE"},
    {"an outer rendezvous (job.master_port chooses the port)", "MASTER_ADDR MASTER_PORT"},
    {"an outer torchrun",
     "TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS "
     "TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_ERROR_FILE TORCHELASTIC_SIGNALS_TO_HANDLE "
     "TORCHELASTIC_TIMER_FILE"},
    {"an outer Open MPI or PMIx server",
     "OMPI_COMM_WORLD_* OMPI_WORLD_* OMPI_UNIVERSE_SIZE OMPI_NUM_APP_CTX OMPI_APP_CTX_NUM_PROCS "
     "OMPI_FIRST_RANKS OMPI_COMMAND OMPI_ARGV OMPI_FILE_LOCATION OMPI_MCA_num_procs "
     "OMPI_MCA_num_restarts OMPI_MCA_initial_wdir OMPI_MCA_ess OMPI_MCA_ess_* OMPI_MCA_orte_* "
     "OMPI_MCA_pmix OMPI_MCA_shmem_RUNTIME_QUERY_hint PMIX_RANK PMIX_NAMESPACE PMIX_SERVER_* "
     "PMIX_SYSTEM_TMPDIR PMIX_SECURITY_MODE PMIX_BFROP_BUFFER_TYPE PMIX_GDS_MODULE PMIX_HOSTNAME "
     "PMIX_VERSION PMIX_ID PMIX_DSTORE_*"},
    {"an outer PMI launcher",
     "PMI_RANK PMI_SIZE PMI_FD PMI_PORT PMI_ID PMI_JOBID PMI_SPAWNED PMI_HOSTNAME MPI_LOCALRANKID "
     "MPI_LOCALNRANKS MV2_COMM_WORLD_*"},
    {"Slurm",
     "SLURM_PROCID SLURM_NTASKS SLURM_NPROCS SLURM_LOCALID SLURM_NODEID SLURM_GTIDS "
     "SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE SLURM_STEP_* SLURM_STEPID SLURM_LAUNCH_NODE_IPADDR"},
    {"an outer horovodrun",
     "HOROVOD_RANK HOROVOD_SIZE HOROVOD_LOCAL_* HOROVOD_CROSS_* HOROVOD_HOSTNAME "
     "HOROVOD_GLOO_RENDEZVOUS_* HOROVOD_ELASTIC"},
    {"an outer LSF launcher", "JSM_NAMESPACE_*"},
    {"an outer TensorFlow job (job.dialects = [\"tf-config\"] writes one for the ranks)", "TF_CONFIG"},
};

bool Matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

constexpr std::size_t kShown = 3;
constexpr std::size_t kLongestValue = 40;

}  // namespace

const std::vector<std::string>& Withheld() {
  static const std::vector<std::string> kWithheld = [] {
    std::vector<std::string> all;
    for (const Family& family : kFamilies) {
      for (const std::string_view pattern : Split(family.patterns, ' ')) all.emplace_back(pattern);
    }
    return all;
  }();
  return kWithheld;
}

bool MatchesAny(std::string_view name, const std::vector<std::string>& patterns) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return Matches(name, pattern); });
}

std::vector<std::string> OuterNotes(const Variables& environment) {
  std::vector<std::string> notes;
  for (const Family& family : kFamilies) {
    // In pattern order, so that the most informative ones come first.
    std::vector<std::string> found;
    for (const std::string_view pattern : Split(family.patterns, ' ')) {
      for (const auto& [name, value] : environment) {
        if (!Matches(name, pattern)) continue;
        found.push_back(value.size() > kLongestValue ? name : name + "=" + value);
      }
    }
    if (found.empty()) continue;
    const std::size_t rest = found.size() > kShown + 1 ? found.size() - kShown : 0;
    if (rest > 0) found.resize(kShown);
    notes.push_back(fmt::format("{}{} of {}: not passed on to the ranks", fmt::join(found, ", "),
                                rest > 0 ? fmt::format(" and {} more", rest) : "", family.whose));
  }
  return notes;
}

std::string OneOfSeveral(const Variables& environment) {
  const bool of_dtrun = environment.contains("DTRUN_RANK");
  const auto rank = environment.find("RANK"), ranks = environment.find("WORLD_SIZE");
  if ((of_dtrun || environment.contains("TORCHELASTIC_RUN_ID")) && rank != environment.end() &&
      ranks != environment.end() && std::atoi(ranks->second.c_str()) >= 2) {
    return fmt::format(
        "this is rank {} of {} of an outer {}, and each rank that runs this command starts a job of its own; "
        "for one job start a single dtrun",
        rank->second, ranks->second, of_dtrun ? "dtrun" : "torchrun");
  }
  struct Outer {
    const char* variable;
    const char* who;
    const char* from;
    const char* once;
  };
  for (const Outer& outer : {Outer{"OMPI_COMM_WORLD_SIZE", "mpirun", "openmpi", "mpirun --map-by ppr:1:node"},
                             Outer{"SLURM_STEP_NUM_TASKS", "srun", "slurm", "srun --ntasks-per-node=1"},
                             Outer{"PMI_SIZE", "mpiexec", "pmi", "mpiexec -ppn 1"}}) {
    const auto found = environment.find(outer.variable);
    if (found == environment.end() || std::atoi(found->second.c_str()) < 2) continue;
    return fmt::format(
        "{} has started {} of this command, and each runs a job of its own; for one job on all hosts start "
        "one "
        "on each ({}) with cluster.from = \"{}\", on one host a single dtrun",
        outer.who, found->second, outer.once, outer.from);
  }
  return {};
}

std::string UnusedAllocation(const Variables& environment) {
  const auto job = environment.find("SLURM_JOB_ID");
  const auto hosts = environment.find("SLURM_NNODES");
  if (job == environment.end() || hosts == environment.end() || std::atoi(hosts->second.c_str()) < 2)
    return {};
  return fmt::format(
      "this shell is in Slurm's allocation {} of {} hosts, and the job runs on this host alone; for a "
      "job on all of them add --set cluster.from=slurm",
      job->second, hosts->second);
}

}  // namespace dtrun::environments

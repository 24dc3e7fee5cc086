#include "core/hosts/allocation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/suggest.h"
#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

// Variables that no other platform sets; any of them is the sign.
struct Sign {
  const char* platform;
  std::vector<const char*> variables;
  std::vector<const char*> implies;  // platforms whose signs this one brings along
};

// Outermost first is no order of precedence: what is not implied is asked about.
const std::vector<Sign>& Signs() {
  static const std::vector<Sign> kSigns = {
      {"azureml",
       {"AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_MPI_MASTER_NODE", "AZUREML_EXPERIMENT_ID"},
       {"openmpi", "pmi"}},
      {"vertex", {"CLUSTER_SPEC"}, {}},
      {"kubeflow", {"PET_NNODES"}, {}},
      {"mpijob", {"K_MPI_JOB_ROLE"}, {}},
      {"slurm", {"SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"}, {"pmi"}},
      {"openmpi", {"OMPI_COMM_WORLD_RANK"}, {}},
      {"pmi", {"PMI_RANK"}, {}},
      {"torchrun", {"TORCHELASTIC_RUN_ID"}, {}},
  };
  return kSigns;
}

struct Found {
  const Sign* sign;
  std::string evidence;  // the variable
};

// srun with a PMI plugin sets PMI_RANK to its own task's number. Any other PMI_RANK in an
// allocation is that of an mpiexec, which starts processes of its own.
bool Implies(const Environment& environment, const Sign& sign, std::string_view platform) {
  if (std::ranges::find(sign.implies, platform) == sign.implies.end()) return false;
  if (std::string_view(sign.platform) != "slurm") return true;
  const auto task = environment.find("SLURM_PROCID");
  return environment.contains("SLURM_STEP_NODELIST") && task != environment.end() &&
         task->second == environment.at("PMI_RANK");
}

std::vector<Found> Look(const Environment& environment) {
  std::vector<Found> found;
  for (const Sign& sign : Signs()) {
    for (const char* name : sign.variables) {
      const auto variable = environment.find(name);
      if (variable == environment.end() || variable->second.empty()) continue;
      found.push_back({&sign, std::string(name)});
      break;
    }
  }
  std::erase_if(found, [&](const Found& one) {
    return std::ranges::any_of(
        found, [&](const Found& other) { return Implies(environment, *other.sign, one.sign->platform); });
  });
  return found;
}

Error Ambiguous(const std::vector<Found>& found) {
  std::string list;
  for (const Found& one : found) {
    list += fmt::format("{}{} (by {})", list.empty() ? "" : ", ", one.sign->platform, one.evidence);
  }
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("\"auto\": several platforms have set variables: {}; say which one numbers "
                           "the hosts, as in cluster.from = \"{}\"",
                           list, found.back().sign->platform)};
}

// RANK and WORLD_SIZE and nothing that says whose they are.
Error Bare(const Environment& environment) {
  std::string list;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"}) {
    const auto found = environment.find(name);
    if (found != environment.end())
      list += fmt::format("{}{}={}", list.empty() ? "" : ", ", name, found->second);
  }
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("\"auto\": {} set, but nothing says by whom: they number hosts on GCP AI "
                  "Platform, Alibaba PAI and Spark, and processes elsewhere; set cluster.from to \"gcp\", "
                  "\"pai\" or \"spark\", or unset RANK and WORLD_SIZE",
                  list)};
}

}  // namespace

int RendezvousPort(int rank_port) {
  const int port = 10'000 + (rank_port * 31 + 17) % 10'000;
  return port == rank_port ? port + 1 : port;
}

const std::vector<Platform>& Platforms() {
  static const std::vector<Platform> kPlatforms = {
      {"slurm", "an allocation of Slurm: a batch script, salloc, or one srun task per host",
       "export it in the batch script before srun, which passes it on", &ReadSlurm},
      {"openmpi", "one process per host of Open MPI's mpirun",
       "export it and start with `mpirun -x DTRUN_CLUSTER_KEY`", &ReadOpenMpi},
      {"pmi", "one process per host of MPICH's or Intel MPI's mpiexec",
       "export it before mpiexec, which passes it on", &ReadPmi},
      {"mpijob", "the launcher pod of Kubeflow's MPIJob", "", &ReadMpiJob},
      {"azureml", "Azure ML, an MPI or a PyTorch job with one process per host",
       "write it under environment_variables of the job", &ReadAzureMl},
      {"gcp", "GCP AI Platform: RANK and WORLD_SIZE number hosts",
       "jobs set no variables: let the container read it from Secret Manager, and export it before it starts "
       "dtrun",
       &ReadGcp},
      {"vertex", "Vertex AI: CLUSTER_SPEC", "write it under containerSpec.env of every worker pool",
       &ReadVertex},
      {"pai", "Alibaba PAI DLC: RANK and WORLD_SIZE number hosts",
       "write it into the environment variables of the job", &ReadPai},
      {"spark", "a task of Spark's TorchDistributor",
       "set spark.executorEnv.DTRUN_CLUSTER_KEY, or set it in the function that the task runs", &ReadSpark},
      {"kubeflow", "a pod of Kubeflow's PyTorchJob or TrainJob: PET_*",
       "give it to every pod from a Secret, by env with valueFrom.secretKeyRef", &ReadKubeflow},
      {"torchrun", "PET_* variables, or one worker per host of torchrun",
       "export the same value before torchrun on every host: its workers inherit it", &ReadTorchrun},
  };
  return kPlatforms;
}

Result<Allocation> FromEnvironment(const Environment& environment, std::string_view from) {
  std::string name(from);
  if (name == "auto") {
    auto detected = DetectPlatform(environment);
    if (!detected) return detected.error();
    name = std::move(*detected);
  }
  std::vector<std::string> names = {"auto"};
  for (const Platform& platform : Platforms()) {
    if (name == platform.name) return platform.read(environment);
    names.emplace_back(platform.name);
  }
  const auto nearest = Nearest(name, names);
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("\"{}\" is not a platform; {}", name,
                           nearest ? fmt::format("did you mean \"{}\"?", *nearest)
                                   : fmt::format("there are {}", fmt::join(names, ", ")))};
}

Result<std::string> DetectPlatform(const Environment& environment) {
  const std::vector<Found> found = Look(environment);
  if (found.size() == 1) return std::string(found.front().sign->platform);
  if (found.size() > 1) return Ambiguous(found);
  if (environment.contains("RANK") || environment.contains("WORLD_SIZE")) return Bare(environment);
  return Error{DTRUN_NOT_FOUND,
               "\"auto\": no platform has set its variables; name the hosts with cluster.hosts or "
               "cluster.hostfile, or start dtrun where the platform sets them"};
}

}  // namespace dtrun::hosts

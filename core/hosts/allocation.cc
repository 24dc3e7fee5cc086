#include "core/hosts/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/text.h"
#include "core/hosts/launchers.h"
#include "core/hosts/platforms.h"

namespace dtrun::hosts {
namespace {

constexpr Platform kPlatforms[] = {
    {"openmpi", "one process per host of Open MPI's mpirun",
     "export it and start with `mpirun -x DTRUN_CLUSTER_KEY`", ReadOpenMpi},
    {"pmi", "one process per host of MPICH's or Intel MPI's mpiexec",
     "export it before mpiexec, which passes it on", ReadPmi},
    {"mpijob", "the launcher pod of Kubeflow's MPIJob", "", ReadMpiJob},
    {"azureml", "Azure ML, an MPI or a PyTorch job with one process per host",
     "write it under environment_variables of the job", ReadAzureMl},
    {"gcp", "GCP AI Platform: RANK and WORLD_SIZE number hosts",
     "jobs set no variables: let the container read it from Secret Manager, and export it before it starts "
     "dtrun",
     ReadGcp},
    {"vertex", "Vertex AI: CLUSTER_SPEC", "write it under containerSpec.env of every worker pool",
     ReadVertex},
    {"pai", "Alibaba PAI DLC: RANK and WORLD_SIZE number hosts",
     "write it into the environment variables of the job", ReadPai},
    {"spark", "a task of Spark's TorchDistributor",
     "set spark.executorEnv.DTRUN_CLUSTER_KEY, or set it in the function that the task runs", ReadSpark},
    {"kubeflow", "a pod of Kubeflow's PyTorchJob or TrainJob: PET_*",
     "give it to every pod from a Secret, by env with valueFrom.secretKeyRef", ReadKubeflow},
    {"torchrun", "PET_* variables, or one worker per host of torchrun",
     "export the same value before torchrun on every host: its workers inherit it", ReadTorchrun},
};

// Variables that only this platform sets; any one of them identifies it.
struct Sign {
  const char* platform;
  std::string_view variables;     // separated by spaces
  std::string_view implies = {};  // platforms that also have their variables set with this one
  bool inside = false;            // also runs inside other platforms' allocations
};

// The order is not a precedence: if two platforms match and neither implies the other, the user
// must choose.
constexpr Sign kSigns[] = {
    {"azureml", "AZ_BATCH_MASTER_NODE AZ_BATCHAI_MPI_MASTER_NODE AZUREML_EXPERIMENT_ID", "openmpi pmi"},
    {"vertex", "CLUSTER_SPEC"},
    {"kubeflow", "PET_NNODES"},
    {"mpijob", "K_MPI_JOB_ROLE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "", true},
    {"pmi", "PMI_RANK", "", true},
    {"torchrun", "TORCHELASTIC_RUN_ID", "", true},
};

// A detected platform.
struct Found {
  std::string platform, evidence;  // evidence is the variable
  std::vector<std::string> implies;
  bool inside = false;
  std::optional<Allocation> allocation;  // found by a launcher
};

std::vector<Found> LookForBuiltIn(const Environment& environment) {
  std::vector<Found> found;
  for (const Sign& sign : kSigns) {
    for (const std::string_view name : Split(sign.variables, ' ')) {
      const auto variable = environment.find(std::string(name));
      if (variable == environment.end() || variable->second.empty()) continue;
      const auto implies = Split(sign.implies, ' ');
      found.push_back({sign.platform, variable->first, {implies.begin(), implies.end()}, sign.inside, {}});
      break;
    }
  }
  return found;
}

// Adds the platforms that launchers find. An error if a platform is present but its variables
// contradict each other.
Status AskLaunchers(Launchers& launchers, const Environment& environment, std::vector<Found>* found) {
  for (const std::string& name : launchers.With(Launchers::Ability::kFindHosts)) {
    auto allocation = launchers.FindHosts(name, environment);
    if (!allocation && allocation.error().code == DTRUN_NOT_FOUND) continue;
    if (!allocation) return std::move(allocation).error();
    std::string evidence = allocation->evidence.empty() ? name : allocation->evidence;
    std::vector<std::string> implies = allocation->implies;
    found->push_back({name, std::move(evidence), std::move(implies), false, *std::move(allocation)});
  }
  return {};
}

Error Ambiguous(const std::vector<Found>& found) {
  std::string list;
  for (const Found& one : found) {
    list += fmt::format("{}{} (by {})", list.empty() ? "" : ", ", one.platform, one.evidence);
  }
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("\"auto\": several platforms have set variables: {}; say which one numbers "
                           "the hosts, as in cluster.from = \"{}\"",
                           list, found.front().platform)};
}

// RANK and WORLD_SIZE are set, but no variable identifies the platform.
Error Bare(const Environment& environment) {
  std::string list;
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"}) {
    const auto found = environment.find(name);
    if (found != environment.end())
      list += fmt::format("{}{}={}", list.empty() ? "" : ", ", name, found->second);
  }
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format(
          "\"auto\": {} set, and no variable tells which platform set them: they number hosts on GCP AI "
          "Platform, Alibaba PAI and Spark, and processes elsewhere; set cluster.from to \"gcp\", "
          "\"pai\" or \"spark\", or unset RANK and WORLD_SIZE",
          list)};
}

Result<Allocation> ReadBuiltIn(const Platform& platform, const Environment& environment) {
  auto allocation = platform.read(environment);
  if (!allocation) return allocation;
  allocation->platform = platform.name;
  allocation->sharing = platform.sharing;
  return allocation;
}

const Platform* BuiltIn(std::string_view name) {
  for (const Platform& platform : Platforms()) {
    if (name == platform.name) return &platform;
  }
  return nullptr;
}

Result<Allocation> Detect(const Environment& environment, Launchers* launchers) {
  std::vector<Found> found = LookForBuiltIn(environment);
  if (launchers != nullptr && std::ranges::all_of(found, &Found::inside)) {
    if (const Status asked = AskLaunchers(*launchers, environment, &found); !asked) return asked.error();
  }
  const std::vector<Found> all = found;
  std::erase_if(found, [&](const Found& one) {
    return std::ranges::any_of(all, [&](const Found& other) {
      return std::ranges::find(other.implies, one.platform) != other.implies.end();
    });
  });
  if (found.size() > 1) return Ambiguous(found);
  if (found.size() == 1 && found[0].allocation) return *std::move(found[0].allocation);
  if (found.size() == 1) return ReadBuiltIn(*BuiltIn(found[0].platform), environment);
  if (environment.contains("RANK") || environment.contains("WORLD_SIZE")) return Bare(environment);
  return Error{DTRUN_NOT_FOUND,
               "\"auto\": no platform has set its variables; name the hosts with cluster.hosts or "
               "cluster.hostfile, or start dtrun where the platform sets them"};
}

Error Unknown(const std::string& name, Launchers* launchers) {
  std::vector<std::string> names = {"auto"};
  for (const Platform& platform : Platforms()) names.emplace_back(platform.name);
  if (launchers != nullptr)
    std::ranges::copy(launchers->With(Launchers::Ability::kFindHosts), std::back_inserter(names));
  const auto nearest = Nearest(name, names);
  return Error{
      DTRUN_INVALID_ARGUMENT,
      fmt::format("\"{}\" is not a platform; {}there are {}", name,
                  nearest ? fmt::format("did you mean \"{}\"? ", *nearest) : "", fmt::join(names, ", "))};
}

}  // namespace

int RendezvousPort(int rank_port) {
  const int port = 10'000 + (rank_port * 31 + 17) % 10'000;
  return port == rank_port ? port + 1 : port;
}

std::span<const Platform> Platforms() { return kPlatforms; }

Result<Allocation> FromEnvironment(const Environment& environment, std::string_view from,
                                   Launchers* launchers) {
  if (from == "auto") return Detect(environment, launchers);
  if (const Platform* platform = BuiltIn(from)) return ReadBuiltIn(*platform, environment);
  const std::string name(from);
  if (launchers == nullptr) return Unknown(name, launchers);
  const auto has = launchers->Has(name, Launchers::Ability::kFindHosts);
  if (!has) return has.error();
  return *has ? launchers->FindHosts(name, environment) : Unknown(name, launchers);
}

}  // namespace dtrun::hosts

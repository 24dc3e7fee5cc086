#include "core/environments/dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::environments {
namespace {

constexpr Dialect kDialects[] = {
    {"accelerate", "Hugging Face accelerate: torchrun's, and its mixed-precision default", WriteAccelerate},
    {"azureml", "Azure ML: OMPI_*, AZ_BATCH_*, and the variables of its PyTorch jobs", WriteAzureMl,
     AzureMlPort},
    {"deepspeed", "DeepSpeed's launcher: env:// and CROSS_*", WriteDeepSpeed},
    {"gcp", "GCP AI Platform: RANK and WORLD_SIZE number hosts", WriteGcp},
    {"horovod", "horovodrun: HOROVOD_*", WriteHorovod},
    {"jax", "JAX: what initialize() finds without arguments", WriteJax},
    {"kubeflow-v1", "Kubeflow PyTorchJob: PET_*, RANK numbers pods, WORLD_SIZE processes", WriteKubeflowV1},
    {"kubeflow-v2", "Kubeflow TrainJob: PET_*", WriteKubeflowV2},
    {"lightning", "PyTorch Lightning, as its TorchElastic environment reads it", WriteLightning},
    {"mpich", "MPICH's Hydra and PMI, without a server: PMI_RANK, MPI_LOCALRANKID", WriteMpich},
    {"openmpi", "Open MPI's mpirun, without a server: OMPI_COMM_WORLD_*", WriteOpenMpi},
    {"slurm", "a task of Slurm's srun: SLURM_PROCID and the like", WriteSlurm},
    {"spark", "Spark's TorchDistributor: each rank is a task of its own", WriteSpark},
    {"tf-config", "TensorFlow: TF_CONFIG with chief, worker, ps and evaluator", WriteTfConfig},
    {"torchrun", "torchrun: env://, GROUP_*, ROLE_* and TORCHELASTIC_*", WriteTorchrun},
    {"vertex", "Vertex AI: CLUSTER_SPEC and TF_CONFIG of hosts; RANK and WORLD_SIZE number hosts",
     WriteVertex},
};

}  // namespace

std::span<const Dialect> Dialects() { return kDialects; }

Result<const Dialect*> FindDialect(std::string_view name) {
  std::vector<std::string> names;
  for (const Dialect& dialect : Dialects()) {
    if (name == dialect.name) return &dialect;
    names.emplace_back(dialect.name);
  }
  const auto nearest = Nearest(name, names);
  return Error{DTRUN_NOT_FOUND, fmt::format("no dialect '{}'; {}", name,
                                            nearest ? fmt::format("did you mean '{}'?", *nearest)
                                                    : fmt::format("there are {}", fmt::join(names, ", ")))};
}

Place PlaceOf(const RankTable& table, int rank) {
  const auto after = std::ranges::upper_bound(table.hosts, rank, {}, &TableHost::first_rank);
  const auto host = std::prev(after);
  return {rank, rank - host->first_rank, static_cast<int>(host - table.hosts.begin()), host->local_size};
}

Variables EnvVariables(const RankTable& table, int rank) {
  return {{"RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(table.world_size())},
          {"LOCAL_RANK", std::to_string(PlaceOf(table, rank).local_rank)},
          {"MASTER_ADDR", table.master_address},
          {"MASTER_PORT", table.master_port}};
}

Result<std::vector<std::string>> AssignRoles(const std::map<std::string, std::string>& counts, int ranks) {
  static const std::vector<std::string> kOrder = {"chief", "worker", "ps", "evaluator"};
  const auto bad = [](std::string text) { return Error{DTRUN_INVALID_ARGUMENT, std::move(text)}; };
  std::map<std::string, int> numbers;
  for (const auto& [role, text] : counts) {
    if (std::ranges::find(kOrder, role) == kOrder.end()) {
      const auto nearest = Nearest(role, kOrder);
      return bad(fmt::format("unknown role '{}'; {}", role,
                             nearest ? fmt::format("did you mean '{}'?", *nearest)
                                     : fmt::format("there are {}", fmt::join(kOrder, ", "))));
    }
    const int number = NumberOf<int>(text).value_or(-1);
    if (number < 0 || number > ranks) {
      return bad(
          fmt::format("'{}' ranks as {}: expected a number from 0 to the job's {}", text, role, ranks));
    }
    numbers[role] = number;
  }
  if (numbers["chief"] > 1) return bad(fmt::format("{} chiefs; a cluster has at most one", numbers["chief"]));
  std::vector<std::string> out;
  for (const std::string& role : kOrder) out.insert(out.end(), static_cast<std::size_t>(numbers[role]), role);
  if (!counts.empty() && out.size() != static_cast<std::size_t>(ranks)) {
    return bad(fmt::format("roles for {} ranks, and the job has {}; make them equal", out.size(), ranks));
  }
  return out;
}

}  // namespace dtrun::environments

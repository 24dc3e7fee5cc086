// Reads the allocation of each platform.
#include "core/hosts/platforms.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/endpoint.h"
#include "core/base/json.h"
#include "core/hosts/reading.h"

namespace dtrun::hosts {

// Azure ML: an MPI job, or a PyTorch job, each with one process per host.
//
// The MPI job's master follows Azure's own recipe (copied in DeepSpeed's comm.py,
// patch_aml_env_for_torch_nccl_backend). On several hosts it is AZ_BATCH_MASTER_NODE without its
// port, with MASTER_PORT or else 6105. On one host it is AZ_BATCHAI_MPI_MASTER_NODE and 54965,
// whatever MASTER_PORT is.

namespace {

constexpr int kSeveralHostsPort = 6105;
constexpr int kOneHostPort = 54965;
constexpr char kFix[] = "set the job's process count per node to 1";

void ReadMpi(Reading& reading, bool intel, Allocation* out) {
  reading.Place(intel ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK", intel ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE",
                out);
  reading.OncePerHost(intel ? "MPI_LOCALNRANKS" : "OMPI_COMM_WORLD_LOCAL_SIZE", kFix);
  if (out->count.max == 1) {
    reading.RootAddress("AZ_BATCHAI_MPI_MASTER_NODE", out);
    out->rank_port = kOneHostPort;
    return;
  }
  if (const std::string master = reading.Text("AZ_BATCH_MASTER_NODE"); !master.empty()) {
    const Result<HostParts> parts = SplitHost(master);
    if (!parts) reading.Fail("AZ_BATCH_MASTER_NODE: " + parts.error().text);
    if (parts) out->root_address = parts->host;
  }
  out->rank_port = reading.MaybeNumber("MASTER_PORT", 1).value_or(kSeveralHostsPort);
}

void ReadTorch(Reading& reading, Allocation* out) {
  reading.Place("NODE_RANK", "WORLD_SIZE", out);
  reading.Expect("RANK", out->own_index.value_or(0),
                 "NODE_RANK says otherwise: with one process per host they are equal");
  reading.Expect("LOCAL_RANK", 0, fmt::format("dtrun starts the ranks itself; {}", kFix));
  reading.Root("MASTER_ADDR", "MASTER_PORT", out);
}

}  // namespace

Result<Allocation> ReadAzureMl(const Environment& environment) {
  Reading reading(environment, "azureml");
  Allocation out;
  const bool open = reading.Find("OMPI_COMM_WORLD_RANK") != nullptr;
  const bool intel = !open && reading.Find("PMI_RANK") != nullptr;
  if (open || intel || reading.Find("NODE_RANK") == nullptr) {
    ReadMpi(reading, intel, &out);
  } else {
    ReadTorch(reading, &out);
  }
  return reading.Take(out);
}

// Processes of an MPI launcher: Open MPI's mpirun, a PMI one (MPICH, Intel MPI), and the
// launcher pod of Kubeflow's MPIJob.

// OMPI_COMM_WORLD_NODE_RANK numbers processes of a host, never hosts, so it is not used.
Result<Allocation> ReadOpenMpi(const Environment& environment) {
  Reading reading(environment, "openmpi");
  Allocation out;
  reading.Place("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", &out);
  reading.OncePerHost("OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun --map-by ppr:1:node dtrun");
  return reading.Take(out);
}

Result<Allocation> ReadPmi(const Environment& environment) {
  Reading reading(environment, "pmi");
  Allocation out;
  reading.Place("PMI_RANK", "PMI_SIZE", &out);
  reading.OncePerHost("MPI_LOCALNRANKS", "mpiexec -ppn 1 dtrun");
  return reading.Take(out);
}

Result<Allocation> ReadMpiJob(const Environment& environment) {
  Reading reading(environment, "mpijob");
  Allocation out;
  const std::string role = reading.Text("K_MPI_JOB_ROLE");
  if (!role.empty() && role != "launcher") {
    reading.Fail("K_MPI_JOB_ROLE says '" + role +
                 "'; dtrun runs in the pod of the launcher, which starts the others");
  }
  for (const char* name : {"OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"}) {
    if (const std::string* file = reading.Find(name)) out.hostfile = *file;
  }
  if (out.hostfile.empty()) {
    reading.Fail("OMPI_MCA_orte_default_hostfile, HYDRA_HOST_FILE and I_MPI_HYDRA_HOST_FILE are unset");
  }
  return reading.Take(out);
}

// Platforms where RANK and WORLD_SIZE count hosts: GCP AI Platform, Alibaba PAI DLC, and
// the tasks of Spark's TorchDistributor.

namespace {

Allocation ReadHostNumbers(Reading& reading) {
  Allocation out;
  reading.Place("RANK", "WORLD_SIZE", &out);
  reading.Root("MASTER_ADDR", "MASTER_PORT", &out);
  return out;
}

// Checks that no launcher has already expanded the hosts into processes.
void NoProcesses(Reading& reading) {
  if (const std::string* rank = reading.Find("LOCAL_RANK")) {
    reading.Fail("LOCAL_RANK=" + *rank + " is set, so RANK numbers processes and not hosts");
  }
}

}  // namespace

Result<Allocation> ReadGcp(const Environment& environment) {
  Reading reading(environment, "gcp");
  Allocation out = ReadHostNumbers(reading);
  NoProcesses(reading);
  return reading.Take(std::move(out));
}

Result<Allocation> ReadPai(const Environment& environment) {
  Reading reading(environment, "pai");
  Allocation out = ReadHostNumbers(reading);
  NoProcesses(reading);
  if (const auto processes = reading.MaybeNumber("NPROC_PER_NODE", 1)) {
    out.processes_per_host = std::to_string(*processes);
  }
  return reading.Take(std::move(out));
}

// A task is one process, and TorchDistributor's torchrun would start one worker in it.
Result<Allocation> ReadSpark(const Environment& environment) {
  Reading reading(environment, "spark");
  Allocation out = ReadHostNumbers(reading);
  reading.Expect("NODE_RANK", out.own_index.value_or(0),
                 "RANK says otherwise: both are the number of the task");
  reading.Expect("LOCAL_RANK", 0, "a task of Spark has one process");
  out.processes_per_host = "1";
  return reading.Take(std::move(out));
}

// torchrun's variables: PET_*, which Kubeflow's operators (PyTorchJob v1, TrainJob v2) set for the
// torchrun of each pod, and the variables of torchrun's own workers.

namespace {

// "4" or "2:4", as torchrun --nnodes takes it.
void ReadHostCount(Reading& reading, Allocation* out) {
  const std::string text = reading.Text("PET_NNODES");
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  const Environment parts = {{"min", text.substr(0, colon)},
                             {"max", colon == std::string::npos ? text : text.substr(colon + 1)}};
  Reading numbers(parts, "");
  out->count = {numbers.Number("min", 1), numbers.Number("max", 1)};
  if (!numbers.Take({}).ok() || out->count.max < out->count.min) {
    reading.Fail(fmt::format("PET_NNODES='{}' is neither a number nor MIN:MAX", text));
  }
}

// PyTorchJob v1 also sets RANK to the pod's number and WORLD_SIZE to pods × processes; a process
// count given as a word counts as 1 there.
void CheckVersion1(Reading& reading, const Allocation& out, int processes) {
  if (out.own_index) {
    reading.Expect("RANK", *out.own_index, fmt::format("PET_NODE_RANK says {}", *out.own_index));
  }
  if (out.count.min != out.count.max) return;
  reading.Expect("WORLD_SIZE", out.count.max * processes,
                 fmt::format("PET_NNODES says {} hosts, PET_NPROC_PER_NODE says {}", out.count.max,
                             out.processes_per_host.empty() ? "nothing" : out.processes_per_host));
}

Allocation ReadPet(Reading& reading) {
  Allocation out;
  ReadHostCount(reading, &out);
  out.everywhere = true;
  const bool elastic = out.count.max > out.count.min;
  // An elastic pod has no number: the rendezvous assigns one.
  out.own_index = elastic ? reading.MaybeNumber("PET_NODE_RANK", 0) : reading.Number("PET_NODE_RANK", 0);
  if (out.own_index && *out.own_index >= out.count.max) reading.Disagree("PET_NODE_RANK", "PET_NNODES");
  if (const std::string* text = reading.Find("PET_NPROC_PER_NODE")) out.processes_per_host = *text;
  reading.Root("PET_MASTER_ADDR", "PET_MASTER_PORT", &out);
  return out;
}

}  // namespace

Result<Allocation> ReadKubeflow(const Environment& environment) {
  Reading reading(environment, "kubeflow");
  Allocation out = ReadPet(reading);
  const std::string& text = out.processes_per_host;
  int processes = 1;
  if (text != "auto" && text != "cpu" && text != "gpu" && !text.empty()) {
    processes = reading.MaybeNumber("PET_NPROC_PER_NODE", 1).value_or(1);
  }
  CheckVersion1(reading, out, processes);
  return reading.Take(std::move(out));
}

// A worker has TORCHELASTIC_RUN_ID, and may have inherited the PET_* of its torchrun.
Result<Allocation> ReadTorchrun(const Environment& environment) {
  Reading reading(environment, "torchrun");
  if (reading.Find("TORCHELASTIC_RUN_ID") == nullptr && reading.Find("PET_NNODES") != nullptr) {
    return reading.Take(ReadPet(reading));
  }
  Allocation out;
  reading.Text("TORCHELASTIC_RUN_ID");
  reading.Place("GROUP_RANK", "GROUP_WORLD_SIZE", &out);
  reading.OncePerHost("LOCAL_WORLD_SIZE", "torchrun --nproc-per-node 1 --no-python dtrun");
  reading.Root("MASTER_ADDR", "MASTER_PORT", &out);
  out.rank_port_taken = true;  // torchrun's agent serves its workers' store there
  return reading.Take(std::move(out));
}

// Vertex AI and AI Platform with custom containers: CLUSTER_SPEC, a JSON object with the
// pools of hosts and this host's place in them. workerpool0 (chief) and workerpool1 (workers) train;
// workerpool2 (parameter or reduction servers) and workerpool3 (evaluators) run programs of their own.

namespace {

constexpr int kTrainingPools = 2, kPools = 4;

void AddPool(Reading& reading, const std::string& name, const Json& pool, Allocation* out) {
  for (const Json& member : pool) {
    const Result<Endpoint> parsed = ParseEndpoint(member.is_string() ? member.get<std::string>() : "");
    const Endpoint address = parsed ? *parsed : Endpoint{};
    if (Status valid = CheckHostName(address.host); !valid || !address.port) {
      reading.Fail(fmt::format("CLUSTER_SPEC: {} in {} is not \"host:port\"", JsonLine(member), name));
      continue;
    }
    if (std::ranges::find(out->hosts, address.host, &HostSlots::name) != out->hosts.end()) {
      reading.Fail(fmt::format("CLUSTER_SPEC names host '{}' twice", address.host));
      continue;
    }
    if (out->hosts.empty()) {
      out->root_address = address.host;
      out->rank_port = address.port;
    }
    out->hosts.push_back({address.host, {}});
  }
}

// Fills hosts and own index. `task` has "workerpoolN" and the index in it. `helpers`: hosts that do not
// train.
void ReadSpec(Reading& reading, const Json& spec, Allocation* out, int* helpers) {
  const Json cluster = spec.is_object() ? spec.value("cluster", Json::object()) : Json();
  const Json task = spec.is_object() ? spec.value("task", Json::object()) : Json();
  if (!cluster.is_object() || !task.is_object() || !task.contains("type") || !task["type"].is_string() ||
      !task.contains("index") || !task["index"].is_number_unsigned()) {
    reading.Fail(
        "CLUSTER_SPEC is not of the form {\"cluster\": {\"workerpool0\": [\"host:port\"]}, \"task\": "
        "{\"type\": \"workerpool0\", \"index\": 0}}");
    return;
  }
  out->everywhere = true;
  const std::string type = task["type"].get<std::string>();
  const std::size_t index = task["index"].get<std::size_t>();
  for (int number = 0; number < kPools; ++number) {
    const std::string name = fmt::format("workerpool{}", number);
    const Json pool = cluster.value(name, Json::array());
    if (!pool.is_array() || pool.size() > kMaxHosts) {
      reading.Fail(fmt::format("CLUSTER_SPEC: {} is not a list of at most {} hosts", name, kMaxHosts));
      continue;
    }
    if (number >= kTrainingPools) {
      if (name == type && index < pool.size()) {
        return reading.Fail(fmt::format(
            "CLUSTER_SPEC says that this host is {} {}, and only workerpool0 and workerpool1 train; start "
            "the program of {} (a reduction server, a parameter server or an evaluator) without dtrun",
            type, index, name));
      }
      *helpers += static_cast<int>(pool.size());
      continue;
    }
    if (name == type && index < pool.size()) out->own_index = static_cast<int>(out->hosts.size() + index);
    AddPool(reading, name, pool, out);
  }
  out->count = {static_cast<int>(out->hosts.size()), static_cast<int>(out->hosts.size())};
  if (!out->own_index) reading.Fail(fmt::format("CLUSTER_SPEC: its cluster has no task {} {}", type, index));
}

}  // namespace

Result<Allocation> ReadVertex(const Environment& environment) {
  Reading reading(environment, "vertex");
  Allocation out;
  const std::string text = reading.Text("CLUSTER_SPEC");
  if (text.empty()) return reading.Take(out);
  const Json spec = ParseJson(text);
  if (spec.is_discarded()) {
    reading.Fail("CLUSTER_SPEC is not JSON");
    return reading.Take(out);
  }
  int helpers = 0;
  ReadSpec(reading, spec, &out, &helpers);
  if (!out.own_index) return reading.Take(out);
  const std::string says = fmt::format("CLUSTER_SPEC says host {} of {}", *out.own_index, out.count.min);
  reading.Expect("RANK", *out.own_index, says);
  // Vertex may count the helpers too.
  if (reading.MaybeNumber("WORLD_SIZE", 1) != out.count.min + helpers)
    reading.Expect("WORLD_SIZE", out.count.min, says);
  return reading.Take(out);
}

}  // namespace dtrun::hosts

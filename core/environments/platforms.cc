// The variables that MPI launchers, schedulers and cloud platforms set.
#include <fmt/format.h>

#include "core/base/endpoint.h"
#include "core/base/json.h"
#include "core/base/number.h"
#include "core/environments/dialect.h"

namespace dtrun::environments {

// Azure ML: the variables of its MPI jobs and of its PyTorch jobs, which are consistent. Scripts that derive
// the master from an MPI job use port 6105 on several hosts, unless MASTER_PORT is set, and always 54965 on
// one host. DeepSpeed's comm.py copies that recipe.

int AzureMlPort(int hosts) { return hosts > 1 ? 6105 : 54965; }

Contract WriteAzureMl(const RankTable& table, int rank) {
  Contract out = WriteOpenMpi(table, rank);
  out.set.merge(EnvVariables(table, rank));
  out.set["AZ_BATCH_MASTER_NODE"] = EndpointText(table.master_address, table.master_port);
  out.set["AZ_BATCHAI_MPI_MASTER_NODE"] = table.master_address;
  out.set["NODE_RANK"] = std::to_string(PlaceOf(table, rank).host_index);
  // DeepSpeed on Azure reads it, and fails if it is unset.
  out.fallback["NCCL_SOCKET_IFNAME"] = "^docker0,lo";
  return out;
}

// GCP AI Platform, PyTorch: the numbers are those of the host. A launcher on each host is expected to derive
// ranks from them.

Contract WriteGcp(const RankTable& table, int rank) {
  return {.set = {{"RANK", std::to_string(PlaceOf(table, rank).host_index)},
                  {"WORLD_SIZE", std::to_string(table.host_count())},
                  {"MASTER_ADDR", table.master_address},
                  {"MASTER_PORT", table.master_port}}};
}

// Kubeflow: PyTorchJob v1, pkg/controller.v1/pytorch/envvar.go, and TrainJob v2, plugins/torch/torch.go. Both
// configure torchrun in a pod; a host corresponds to a pod.

Contract WriteKubeflowV2(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  return {.set = {{"PET_NNODES", std::to_string(table.host_count())},
                  {"PET_NPROC_PER_NODE", std::to_string(place.local_size)},
                  {"PET_NODE_RANK", std::to_string(place.host_index)},
                  {"PET_MASTER_ADDR", table.master_address},
                  {"PET_MASTER_PORT", table.master_port}}};
}

// RANK is the pod's number, but WORLD_SIZE counts processes.
Contract WriteKubeflowV1(const RankTable& table, int rank) {
  Contract out = WriteKubeflowV2(table, rank);
  out.set["RANK"] = out.set["PET_NODE_RANK"];
  out.set["WORLD_SIZE"] = std::to_string(table.world_size());
  out.set["MASTER_ADDR"] = table.master_address;
  out.set["MASTER_PORT"] = table.master_port;
  out.fallback["PYTHONUNBUFFERED"] = "1";
  return out;
}

// MPICH's Hydra: src/pm/hydra/proxy/pmip_cb.c. PMI_FD and PMI_PORT belong to a PMI server.

Contract WriteMpich(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  return {.set = {{"PMI_RANK", std::to_string(rank)},
                  {"PMI_SIZE", std::to_string(table.world_size())},
                  {"MPI_LOCALRANKID", std::to_string(place.local_rank)},
                  {"MPI_LOCALNRANKS", std::to_string(place.local_size)},
                  {"PMI_HOSTNAME", table.hosts[static_cast<std::size_t>(place.host_index)].name}}};
}

// Open MPI: the rank variables of OpenPMIx's pmdl_ompi.c and Open MPI's environment-var.rst. Left out: the
// description of mpirun's own command, and PMIX_*, which belong to a server.

Contract WriteOpenMpi(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  const std::string size = std::to_string(table.world_size());
  return {.set = {
              {"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
              {"OMPI_COMM_WORLD_SIZE", size},
              {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(place.local_rank)},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(place.local_size)},
              // The rank among all processes of this host, not the number of the host.
              {"OMPI_COMM_WORLD_NODE_RANK", std::to_string(place.local_rank)},
              {"OMPI_WORLD_SIZE", size},
              {"OMPI_WORLD_LOCAL_SIZE", std::to_string(place.local_size)},
              {"OMPI_UNIVERSE_SIZE", size},
              {"OMPI_NUM_APP_CTX", "1"},
              {"OMPI_APP_CTX_NUM_PROCS", size},
              {"OMPI_FIRST_RANKS", "0"},
              {"OMPI_MCA_num_procs", size},
              {"OMPI_MCA_num_restarts", std::to_string(table.generation)},
          }};
}

// Slurm: srun(1), "OUTPUT ENVIRONMENT VARIABLES". Does not invent a SLURM_JOB_ID: signal handlers pass it to
// scontrol and scancel. SLURM_LAUNCH_NODE_IPADDR may be a login node, so programs should not read it.

Contract WriteSlurm(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  const std::string tasks = std::to_string(table.world_size());
  const std::string hosts = std::to_string(table.host_count());
  std::string names, ranks_here;
  std::vector<int> sizes;
  for (const TableHost& host : table.hosts) {
    names += (names.empty() ? "" : ",") + host.name;
    sizes.push_back(host.local_size);
  }
  for (int local = 0; local < place.local_size; ++local) {
    ranks_here += fmt::format("{}{}", local == 0 ? "" : ",", rank - place.local_rank + local);
  }
  const std::string tasks_per_node = CountList(sizes);
  Contract out;
  out.set = {
      {"SLURM_PROCID", std::to_string(rank)},
      {"SLURM_NTASKS", tasks},
      {"SLURM_NPROCS", tasks},
      {"SLURM_STEP_NUM_TASKS", tasks},
      {"SLURM_LOCALID", std::to_string(place.local_rank)},
      {"SLURM_GTIDS", ranks_here},
      {"SLURM_TASKS_PER_NODE", tasks_per_node},
      {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
      {"SLURM_NODEID", std::to_string(place.host_index)},
      {"SLURM_NNODES", hosts},
      {"SLURM_JOB_NUM_NODES", hosts},
      {"SLURM_STEP_NUM_NODES", hosts},
      {"SLURM_NODELIST", names},
      {"SLURM_JOB_NODELIST", names},
      {"SLURM_STEP_NODELIST", names},
      {"SLURM_RESTART_COUNT", std::to_string(table.generation)},
  };
  out.fallback = {{"SLURM_JOB_NAME", table.run_id}};
  // Lightning rejects several tasks without it.
  if (std::ranges::all_of(sizes, [&](int size) { return size == sizes[0]; })) {
    out.set["SLURM_NTASKS_PER_NODE"] = std::to_string(sizes[0]);
  }
  return out;
}

// Vertex AI, custom containers: a pool of one chief and a pool of workers, each host a
// member. Left out: "job", the text of a request to the service, and "open_ports".

Contract WriteVertex(const RankTable& table, int rank) {
  const int own = PlaceOf(table, rank).host_index;
  Json chief = Json::array(), workers = Json::array();
  for (const TableHost& host : table.hosts) {
    const std::string endpoint =
        EndpointText(host.address, table.task_ports[static_cast<std::size_t>(host.first_rank)]);
    (chief.empty() ? chief : workers).push_back(endpoint);
  }
  const int index = own == 0 ? 0 : own - 1;
  Json pools = {{"workerpool0", chief}}, cluster = {{"chief", chief}};
  if (!workers.empty()) {
    pools["workerpool1"] = workers;
    cluster["worker"] = workers;
  }
  const Json spec = {{"cluster", pools},
                     {"environment", "cloud"},
                     {"task", {{"type", own == 0 ? "workerpool0" : "workerpool1"}, {"index", index}}}};
  const Json config = {{"cluster", cluster},
                       {"environment", "cloud"},
                       {"task", {{"type", own == 0 ? "chief" : "worker"}, {"index", index}}}};
  Contract out = WriteGcp(table, rank);
  out.set["CLUSTER_SPEC"] = JsonLine(spec);
  out.set["TF_CONFIG"] = JsonLine(config);
  return out;
}

}  // namespace dtrun::environments

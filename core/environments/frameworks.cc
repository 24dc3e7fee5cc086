// The variables that the launchers of frameworks set.

#include "core/base/endpoint.h"
#include "core/base/json.h"
#include "core/environments/dialect.h"

namespace dtrun::environments {

// Hugging Face accelerate: accelerate/utils/launch.py. Its other ACCELERATE_* variables are user choices with
// defaults.

Contract WriteAccelerate(const RankTable& table, int rank) {
  Contract out = WriteTorchrun(table, rank);
  out.fallback["ACCELERATE_MIXED_PRECISION"] = "no";
  // Without it Accelerator() on CPUs creates no process group: every rank trains alone and succeeds.
  const auto host = static_cast<std::size_t>(PlaceOf(table, rank).host_index);
  if (!table.hosts[host].sees_gpus) out.fallback["ACCELERATE_USE_CPU"] = "true";
  return out;
}

// DeepSpeed: deepspeed/launcher/launch.py. CROSS_* number hosts here, unlike Horovod's.

Contract WriteDeepSpeed(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out{EnvVariables(table, rank)};
  out.set.insert({{"LOCAL_SIZE", std::to_string(place.local_size)},
                  {"CROSS_RANK", std::to_string(place.host_index)},
                  {"CROSS_SIZE", std::to_string(table.host_count())}});
  return out;
}

// Horovod: horovod/runner/gloo_run.py, horovod/common/gloo/gloo_context.cc.

std::map<std::string, std::size_t> HorovodScopes(const RankTable& table) {
  std::map<std::string, std::size_t> members;
  members["global"] = static_cast<std::size_t>(table.world_size());
  for (const TableHost& host : table.hosts) {
    members["local_" + host.name] = static_cast<std::size_t>(host.local_size);
    for (int local = 0; local < host.local_size; ++local) ++members["cross_" + std::to_string(local)];
  }
  return members;
}

Contract WriteHorovod(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  // The index of this host among the hosts with a rank of this local number.
  int cross_rank = 0, cross_size = 0;
  for (int host = 0; host < table.host_count(); ++host) {
    if (table.hosts[static_cast<std::size_t>(host)].local_size <= place.local_rank) continue;
    if (host < place.host_index) ++cross_rank;
    ++cross_size;
  }
  Contract out;
  out.set = {
      {"HOROVOD_HOSTNAME", table.hosts[static_cast<std::size_t>(place.host_index)].name},
      {"HOROVOD_RANK", std::to_string(rank)},
      {"HOROVOD_SIZE", std::to_string(table.world_size())},
      {"HOROVOD_LOCAL_RANK", std::to_string(place.local_rank)},
      {"HOROVOD_LOCAL_SIZE", std::to_string(place.local_size)},
      {"HOROVOD_CROSS_RANK", std::to_string(cross_rank)},
      {"HOROVOD_CROSS_SIZE", std::to_string(cross_size)},
  };

  if (!table.rendezvous_address.empty()) {
    out.set["HOROVOD_CONTROLLER"] = "gloo";
    out.set["HOROVOD_CPU_OPERATIONS"] = "gloo";
    out.set["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = table.rendezvous_address;
    out.set["HOROVOD_GLOO_RENDEZVOUS_PORT"] = table.rendezvous_port;
  }
  out.fallback = {{"PYTHONUNBUFFERED", "1"}};
  return out;
}

// JAX: jax/_src/distributed.py and jax/_src/clusters/slurm_cluster.py. initialize() without arguments tries
// to detect one cluster environment after another. Of those that JAX knows, only Slurm's consists of
// variables alone; the coordinator's address is a variable of JAX itself.

Contract WriteJax(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  std::string names;
  for (const TableHost& host : table.hosts) names += (names.empty() ? "" : ",") + host.name;
  return {.set = {{"JAX_COORDINATOR_ADDRESS", EndpointText(table.master_address, table.master_port)},
                  {"SLURM_STEP_NODELIST", names},
                  {"SLURM_NTASKS", std::to_string(table.world_size())},
                  {"SLURM_PROCID", std::to_string(rank)},
                  {"SLURM_LOCALID", std::to_string(place.local_rank)}},
          // Required, and must not match a real Slurm job: real job ids are far smaller.
          .fallback = {{"SLURM_JOB_ID", "4000000000"}}};
}

// PyTorch Lightning: lightning/fabric/plugins/environments/torchelastic.py. The run id makes Lightning prefer
// this environment to Slurm's or MPI's.

Contract WriteLightning(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  Contract out{EnvVariables(table, rank)};
  out.set.insert({{"GROUP_RANK", std::to_string(place.host_index)},
                  {"NODE_RANK", std::to_string(place.host_index)},
                  {"TORCHELASTIC_RUN_ID", table.run_id},
                  {"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  return out;
}

// Spark's TorchDistributor: pyspark/ml/torch/distributor.py. A task is a partition with one process and
// counts as a node: LOCAL_RANK is 0 everywhere.

Contract WriteSpark(const RankTable& table, int rank) {
  Contract out{EnvVariables(table, rank)};
  out.set["LOCAL_RANK"] = "0";
  out.set["NODE_RANK"] = std::to_string(rank);
  return out;
}

// TensorFlow: tensorflow/python/distribute/cluster_resolver/tfconfig_cluster_resolver.py. The evaluator has
// its own task and is in no cluster.

Contract WriteTfConfig(const RankTable& table, int rank) {
  Json cluster = Json::object();
  std::string own_role;
  int own_index = 0;
  std::map<std::string, int> counts;
  for (int other = 0; other < table.world_size(); ++other) {
    const auto index = static_cast<std::size_t>(other);
    const std::string role = table.roles.empty() ? "worker" : table.roles[index];
    if (other == rank) {
      own_role = role;
      own_index = counts[role];
    }
    ++counts[role];
    if (role == "evaluator") continue;
    const TableHost& host = table.hosts[static_cast<std::size_t>(PlaceOf(table, other).host_index)];
    cluster[role].push_back(EndpointText(host.address, table.task_ports[index]));
  }
  const Json config = {
      {"cluster", cluster}, {"task", {{"type", own_role}, {"index", own_index}}}, {"environment", "cloud"}};
  return {.set = {{"TF_CONFIG", JsonLine(config)}}};
}

// torchrun: torch/distributed/elastic/agent/server/local_elastic_agent.py.

namespace {

// A job without roles uses torchrun's default role.
const std::string& RoleOf(const RankTable& table, int rank) {
  static const std::string kDefault = "default";
  return table.roles.empty() ? kDefault : table.roles[static_cast<std::size_t>(rank)];
}

}  // namespace

Contract WriteTorchrun(const RankTable& table, int rank) {
  const Place place = PlaceOf(table, rank);
  const std::string& role = RoleOf(table, rank);
  int role_rank = 0, role_size = 0;
  for (int other = 0; other < table.world_size(); ++other) {
    if (RoleOf(table, other) != role) continue;
    if (other < rank) ++role_rank;
    ++role_size;
  }
  Contract out{EnvVariables(table, rank)};
  out.set.insert({
      {"LOCAL_WORLD_SIZE", std::to_string(place.local_size)},
      {"GROUP_RANK", std::to_string(place.host_index)},
      {"GROUP_WORLD_SIZE", std::to_string(table.host_count())},
      {"ROLE_NAME", role},
      {"ROLE_RANK", std::to_string(role_rank)},
      {"ROLE_WORLD_SIZE", std::to_string(role_size)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(table.generation)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(table.max_restarts)},
      {"TORCHELASTIC_RUN_ID", table.run_id},
      // dtrun serves no TCPStore: rank 0 opens it.
      {"TORCHELASTIC_USE_AGENT_STORE", "False"},
      {"TORCHELASTIC_ERROR_FILE", table.run_dir + "/rank-" + std::to_string(rank) + ".error.json"},
  });
  out.fallback = {{"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
  if (place.local_size > 1) out.fallback["OMP_NUM_THREADS"] = "1";
  return out;
}

}  // namespace dtrun::environments

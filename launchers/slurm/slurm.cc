// slurm: the hosts of an allocation, srun as the way to them, and ranks that are processes of their own with
// the environment that srun gives a task (srun(1), "OUTPUT ENVIRONMENT VARIABLES") and the env:// variables.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/plugin.hpp"
#include "launchers/schedulers/nodelist.h"
#include "launchers/slurm/hosts.h"

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

class Slurm final : public dtrun::sdk::Launcher {
 public:
  Slurm(const dtrun::sdk::Host&, const dtrun::sdk::Options&) {}

  dtrun::sdk::Allocation FindHosts(const dtrun::sdk::HostsQuery& query) override {
    return dtrun::slurm::FindHosts(query);
  }

  std::vector<dtrun::sdk::ConnectCommand> Connect(const dtrun::sdk::ConnectQuery& query) override {
    return dtrun::slurm::Connect(query);
  }

  void Plan(const dtrun::sdk::Job& job, const dtrun::sdk::PlanSink& sink) override {
    if (!job.Inherited("SLURM_JOB_ID")) {
      throw dtrun::sdk::Failure(
          DTRUN_FAILED_PRECONDITION,
          "SLURM_JOB_ID is unset, so this is not a Slurm allocation; run dtrun from sbatch "
          "or salloc, or take launcher.name = \"per-process\"");
    }
    const Variables shared = OfAll(job);
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      std::string ranks;
      for (int local = 0; local < host.local_size; ++local) {
        ranks += (local == 0 ? "" : ",") + std::to_string(host.first_rank + local);
      }
      for (int local = 0; local < host.local_size; ++local) {
        dtrun::sdk::Process process = job.ProcessFor(index, local);
        process.env = shared;
        const std::string rank = std::to_string(process.rank), place = std::to_string(local);
        for (const auto& [name, value] : Variables{{"SLURM_PROCID", rank},
                                                   {"SLURM_LOCALID", place},
                                                   {"SLURM_GTIDS", ranks},
                                                   {"SLURM_NODEID", std::to_string(index)},
                                                   {"RANK", rank},
                                                   {"LOCAL_RANK", place},
                                                   {"LOCAL_WORLD_SIZE", std::to_string(host.local_size)},
                                                   {"NODE_RANK", std::to_string(index)}}) {
          process.env.emplace_back(name, value);
        }
        sink.Add(process);
      }
    }
  }

 private:
  // What is the same for every rank.
  static Variables OfAll(const dtrun::sdk::Job& job) {
    std::string names;
    std::vector<int> sizes;
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      names += (index == 0 ? "" : ",") + std::string(host.name);
      sizes.push_back(host.local_size);
    }
    const std::string tasks = std::to_string(job.world_size()), hosts = std::to_string(job.host_count());
    Variables env = {
        {"SLURM_NTASKS", tasks},
        {"SLURM_NPROCS", tasks},
        {"SLURM_STEP_NUM_TASKS", tasks},
        {"SLURM_TASKS_PER_NODE", dtrun::schedulers::CompressCounts(sizes)},
        {"SLURM_STEP_TASKS_PER_NODE", dtrun::schedulers::CompressCounts(sizes)},
        {"SLURM_NNODES", hosts},
        {"SLURM_STEP_NUM_NODES", hosts},
        {"SLURM_NODELIST", names},
        {"SLURM_STEP_NODELIST", names},
        {"SLURM_RESTART_COUNT", job.generation()},
        {"WORLD_SIZE", tasks},
        {"MASTER_ADDR", job.master_addr()},
        {"MASTER_PORT", job.master_port()},
    };
    // Lightning refuses several tasks without it.
    const bool equal = std::all_of(sizes.begin(), sizes.end(), [&](int size) { return size == sizes[0]; });
    if (equal) env.emplace_back("SLURM_NTASKS_PER_NODE", std::to_string(sizes[0]));
    return env;
  }
};

}  // namespace

DTRUN_SDK_PLUGIN(
    Slurm, .name = "slurm", .version = DTRUN_VERSION, .vendor = "dtrun", .license = "Apache-2.0",
    .summary = "an allocation of Slurm; every rank is a process with the environment of a task of srun")

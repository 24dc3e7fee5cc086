// per-node: one process per host, with the environment of a node. The program, or a launcher of
// its own, makes the ranks there.
#include <algorithm>
#include <string>

#include "dtrun/plugin.hpp"

namespace {

class PerNode final : public dtrun::sdk::Launcher {
 public:
  PerNode(const dtrun::sdk::Host&, const dtrun::sdk::Options&) {}

  void Plan(const dtrun::sdk::Job& job, const dtrun::sdk::PlanSink& sink) override {
    const std::string nodes = std::to_string(job.host_count());
    const bool own_threads = job.Inherited("OMP_NUM_THREADS").has_value();
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      const std::string node = std::to_string(index);
      const std::string ranks = std::to_string(host.local_size);
      dtrun::sdk::Process process;
      process.host_index = static_cast<int>(index);
      process.rank = host.first_rank;
      process.rank_count = host.local_size;
      process.env = {
          {"NNODES", nodes},
          {"NODE_RANK", node},
          {"NPROC_PER_NODE", ranks},
          {"GROUP_RANK", node},
          {"GROUP_WORLD_SIZE", nodes},
          {"MASTER_ADDR", job.master_addr()},
          {"MASTER_PORT", job.master_port()},
          // A torchrun that the command names needs no arguments for its place.
          {"PET_NNODES", nodes},
          {"PET_NODE_RANK", node},
          {"PET_NPROC_PER_NODE", ranks},
          {"PET_MASTER_ADDR", job.master_addr()},
          {"PET_MASTER_PORT", job.master_port()},
      };
      if (!own_threads) {
        const int threads = std::max(1, host.cores / host.local_size);
        process.env.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
      }
      sink.Add(process);
    }
    if (!own_threads) {
      sink.Note("OMP_NUM_THREADS is each host's cores / its ranks; set it in job.env to choose another");
    }
  }
};

}  // namespace

DTRUN_SDK_PLUGIN(PerNode, .name = "per_node", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "one process per host; the program makes the ranks there")

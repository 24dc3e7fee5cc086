// per-process: every rank is a process of its own, with the env:// variables.
#include <algorithm>
#include <string>

#include "dtrun/plugin.hpp"

namespace {

// "1 rank", "2 ranks"
std::string Count(int number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

class PerProcess final : public dtrun::sdk::Launcher {
 public:
  PerProcess(const dtrun::sdk::Host&, const dtrun::sdk::Options&) {}

  void Plan(const dtrun::sdk::Job& job, const dtrun::sdk::PlanSink& sink) override {
    for (std::uint64_t index = 0; index < job.host_count(); ++index) {
      const dtrun_job_host host = job.host(index);
      const int threads = std::max(1, host.cores / host.local_size);
      const bool own_threads = job.Inherited("OMP_NUM_THREADS").has_value();
      if (!own_threads && index == 0) {
        sink.Note("OMP_NUM_THREADS=" + std::to_string(threads) + " for each rank (" +
                  Count(host.cores, "core") + " for " + Count(host.local_size, "rank") +
                  "); set it in job.env to choose another");
      }
      for (int local = 0; local < host.local_size; ++local) {
        dtrun::sdk::Process process = job.ProcessFor(index, local);
        process.env = {
            {"RANK", std::to_string(process.rank)}, {"WORLD_SIZE", std::to_string(job.world_size())},
            {"LOCAL_RANK", std::to_string(local)},  {"LOCAL_WORLD_SIZE", std::to_string(host.local_size)},
            {"NODE_RANK", std::to_string(index)},   {"MASTER_ADDR", job.master_addr()},
            {"MASTER_PORT", job.master_port()},
        };
        if (!own_threads) process.env.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
        sink.Add(process);
      }
    }
  }
};

}  // namespace

DTRUN_SDK_PLUGIN(PerProcess, .name = "per_process", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "every rank is a process of its own, with the env:// variables")

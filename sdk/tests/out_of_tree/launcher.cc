// The smallest launcher in C++: one process per host.
#include "dtrun/plugin.hpp"

namespace {

class OnePerHost final : public dtrun::sdk::Launcher {
 public:
  OnePerHost(const dtrun::sdk::Host&, const dtrun::sdk::Options&) {}
  void Plan(const dtrun::sdk::Job& job, const dtrun::sdk::PlanSink& sink) override {
    for (std::uint64_t i = 0; i < job.host_count(); ++i) {
      dtrun::sdk::Process process;
      process.host_index = static_cast<int>(i);
      process.rank = job.host(i).first_rank;
      process.rank_count = job.host(i).local_size;
      sink.Add(process);
    }
  }
};

constexpr dtrun::sdk::PluginInfo kInfo{"in-cxx", "1.0", "dtrun tests", "MIT", "one process per host"};
constexpr dtrun_plugin kPlugin = dtrun::sdk::MakePlugin<OnePerHost>(kInfo);

}  // namespace

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(kPlugin, host, out, err);
}

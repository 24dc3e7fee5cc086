// The entry point and the backend: which library, what it can do.
#include <memory>
#include <optional>
#include <string>

#include "comm.h"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/environment.hpp"
#include "mpi_options.h"

namespace dtrun::mpi_plugin {
namespace {

class MpiBackend final : public sdk::Backend<MpiCommunicator> {
 public:
  MpiBackend(const sdk::Host& host, const sdk::Options& options)
      : host_(host), world_(World::Open(options.FindString("library"))) {
    options_.coll_sm = static_cast<CollSm>(options.EnumIndex("coll_sm"));
    options_.blocking = static_cast<Blocking>(options.EnumIndex("blocking"));
    options_.limit = static_cast<std::uint64_t>(options.Int("chunk"));
    device_text_ = ChooseDeviceMemory(static_cast<DeviceMemory>(options.EnumIndex("device_memory")));
  }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    caps.lazy_connect = true;
    caps.no_stream = options_.cuda;
    if (options_.cuda) caps.device_kinds |= sdk::Bits({DTRUN_DEVICE_CUDA});
    return caps;
  }

  bool Supports(const dtrun_support_query& query) const override {
    return query.device_kind == DTRUN_DEVICE_HOST || MpiDoesAll(query);
  }

  std::unique_ptr<MpiCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<MpiCommunicator>(host_, params, world_, options_);
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    sink.Fact("library", ShortVersion(world_.library().version));
    sink.Fact("library_path", world_.library().path);
    sink.Fact("memory", "host");
    sink.Fact("device", device_text_);
    const std::vector<Variable> variables =
        CollSmVariables(options_.coll_sm, query.host_count == 1 ? query.local_ranks : 0);
    sink.Fact("coll_sm", CollSmText(variables));
    sink.Fact("algorithm", "Open MPI's, which it chooses for each call; coll/sm " + CollSmText(variables));
    for (const Variable& variable : variables) sink.Env(variable.name, variable.value);
  }

 private:
  // What becomes of memory of CUDA, in words.
  std::string ChooseDeviceMemory(DeviceMemory wanted) {
    if (wanted == DeviceMemory::kStaged) return "staged, as backend.options.device_memory says";
    if (!world_.api().TakesCuda())
      return "staged, because this Open MPI was built without CUDA, or does not say yet that it takes its "
             "memory";
    // Its collectives copy with processors, and would stand before those of Open MPI that know CUDA.
    if (options_.coll_sm == CollSm::kOn || sdk::EnvironmentVariable("OMPI_MCA_coll_sm_priority"))
      return "staged, because coll_sm is on";
    options_.coll_sm = CollSm::kOff;
    options_.cuda = true;
    return "direct (Open MPI with cuda); what MPI does not do by itself staged";
  }

  const sdk::Host host_;
  World& world_;
  CommOptions options_;
  std::string device_text_;
};

constexpr sdk::PluginInfo kInfo = {
    .name = DTRUN_PLUGIN_NAME,
    .version = DTRUN_VERSION,
    .vendor = "dtrun",
    .license = "Apache-2.0",
    .summary = "collectives of an installed Open MPI",
    .options = kOptions,
    .option_count = std::size(kOptions),
};
constexpr dtrun_plugin kPlugin = sdk::MakePlugin<MpiBackend>(kInfo);

}  // namespace
}  // namespace dtrun::mpi_plugin

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(dtrun::mpi_plugin::kPlugin, host, out, err);
}

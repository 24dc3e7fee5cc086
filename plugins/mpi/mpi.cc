// The entry point and the backend: which library, what it can do.
#include <memory>
#include <optional>
#include <string>

#include "comm.h"
#include "dtrun/plugin.hpp"
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
  }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    caps.lazy_connect = true;
    return caps;
  }

  std::unique_ptr<MpiCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<MpiCommunicator>(host_, params, world_, options_);
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    sink.Fact("library", ShortVersion(world_.library().version));
    sink.Fact("library_path", world_.library().path);
    sink.Fact("memory", "host");
    const std::vector<Variable> variables =
        CollSmVariables(options_.coll_sm, query.host_count == 1 ? query.local_ranks : 0);
    sink.Fact("coll_sm", CollSmText(variables));
    sink.Fact("algorithm", "Open MPI's, which it chooses for each call; coll/sm " + CollSmText(variables));
    for (const Variable& variable : variables) sink.Env(variable.name, variable.value);
  }

 private:
  const sdk::Host host_;
  World& world_;
  CommOptions options_;
};

constexpr sdk::PluginInfo kInfo = {
    .name = DTRUN_PLUGIN_NAME,
    .version = DTRUN_VERSION,
    .vendor = "dtrun",
    .license = "Apache-2.0",
    .summary = "collectives of an installed Open MPI, for host memory",
    .options = kOptions,
    .option_count = std::size(kOptions),
};
constexpr dtrun_plugin kPlugin = sdk::MakePlugin<MpiBackend>(kInfo);

}  // namespace
}  // namespace dtrun::mpi_plugin

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(dtrun::mpi_plugin::kPlugin, host, out, err);
}

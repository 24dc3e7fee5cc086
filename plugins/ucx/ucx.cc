// The entry point and the backend: which library, which transports, what it can do.
#include <map>
#include <memory>
#include <mutex>

#include "dtrun/interfaces.hpp"
#include "dtrun/plugin/environment.hpp"
#include "engine.h"
#include "messenger.h"
#include "resources.h"
#include "ucx_options.h"

namespace dtrun::ucx_plugin {
namespace {

// Tells programs what was decided on peer access, as the nccl backend does.
constexpr const char* kForPrograms = "DTRUN_P2P";

// The option, else UCX's own variable, which is checked in the same way.
std::optional<std::string> OptionOr(const sdk::Options& options, const char* key, const char* variable) {
  if (std::optional<std::string> value = options.FindString(key)) return value;
  return sdk::EnvironmentVariable(variable);
}

class UcxBackend final : public sdk::Backend<Engine> {
 public:
  UcxBackend(const sdk::Host& host, const sdk::Options& options)
      : host_(host),
        library_(Library::Get(host)),
        resources_(ListResources(library_)),
        rails_(options.FindInt("rails")) {
    wanted_.transports = OptionOr(options, "transports", "UCX_TLS");
    wanted_.devices = OptionOr(options, "devices", "UCX_NET_DEVICES");
    peers_ = ChoosePeers(options.EnumIndex("p2p"), wanted_.transports, sdk::EnvironmentVariable(kForPrograms),
                         resources_);
    wanted_.transports = peers_.transports;
    wanted_.rdma = options.EnumIndex("required") == kRequiredRdma;
    const Selection selection = Choose(true);  // refuses what this host lacks now
    if (options.EnumIndex("device_memory") == kDeviceMemoryAuto) {
      devices_ = std::make_unique<DeviceMemory>(library_, selection);
    } else {
      devices_ = std::make_unique<DeviceMemory>();
    }
  }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.any_source = true;
    caps.lazy_connect = true;
    caps.device_kinds |= devices_->kinds();
    caps.no_stream = devices_->kinds() != 0;
    return caps;
  }

  bool Supports(const dtrun_support_query& query) const override {
    return query.device_kind == DTRUN_DEVICE_HOST || MovesOnDevices(query.kind);
  }

  std::unique_ptr<Engine> CreateCommunicator(const sdk::CommParams& params) override {
    return std::make_unique<Engine>(host_, params, ContextFor(params), *devices_);
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    const bool one_host = query.host_count <= 1;
    const Selection selection = Choose(one_host);
    sink.Fact("library",
              "UCX " + library_.version() + (library_.found_loaded() ? " (already in the process)" : ""));
    sink.Fact("library_path", library_.path());
    sink.Fact("memory", "host");
    sink.Fact("device", devices_->Text());
    sink.Fact("by interface", "devices UCX_NET_DEVICES");
    sink.Fact("by wire", "transports UCX_TLS");
    sink.Fact("by p2p", std::string("p2p UCX_TLS ") + kForPrograms);
    // Between hosts dtrun tells each rank what has been proven, which RDMA does not need.
    if (one_host || wanted_.devices || selection.why_not_rdma.empty()) {
      sink.Fact("interface", selection.Text(one_host));
    }
    sink.Fact("rdma", selection.why_not_rdma.empty() ? "yes" : "no: " + selection.why_not_rdma);
    sink.Fact("wire", selection.why_not_rdma.empty() ? "RDMA" : "TCP");
    sink.Fact("algorithm",
              "small vectors by recursive doubling, larger ones by halving, large ones around a ring, by "
              "size and ranks");
    sink.Fact("agree " + std::string(kForPrograms), "off");
    if (!peers_.fact.empty()) sink.Fact("p2p", peers_.fact);
    if (!peers_.for_programs.empty()) sink.Env(kForPrograms, peers_.for_programs);
    if (wanted_.transports) sink.Env("UCX_TLS", *wanted_.transports);
    if (wanted_.devices) sink.Env("UCX_NET_DEVICES", *wanted_.devices);
  }

 private:
  // `tested`: the interface that dtrun has found to reach the other hosts, or empty.
  Selection Choose(bool one_host, const std::string& tested = {}) const {
    return Select(resources_, tested.empty() ? interfaces::DefaultRoutes() : std::vector<std::string>{tested},
                  wanted_, one_host);
  }

  std::shared_ptr<Context> ContextFor(const sdk::CommParams& params) {
    const bool one_host = params.host_count <= 1;
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Context>& context = contexts_[one_host];
    if (context == nullptr)
      context = std::make_shared<Context>(library_, Choose(one_host, params.interface_name), rails_);
    return context;
  }

  const sdk::Host host_;
  const Library& library_;
  const std::vector<Resource> resources_;
  const std::optional<std::int64_t> rails_;
  Wanted wanted_;
  PeerChoice peers_;
  std::unique_ptr<DeviceMemory> devices_;
  std::mutex mutex_;
  std::map<bool, std::shared_ptr<Context>> contexts_;  // by whether all ranks share a host
};

}  // namespace
}  // namespace dtrun::ucx_plugin

DTRUN_SDK_PLUGIN(dtrun::ucx_plugin::UcxBackend, .name = "ucx", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "collectives over InfiniBand, RoCE, TCP and shared memory, on UCX",
                 .options = dtrun::ucx_plugin::kOptions,
                 .option_count = std::size(dtrun::ucx_plugin::kOptions))

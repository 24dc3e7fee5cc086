// The entry point and the backend: its options, which library, which transports, what it can do.
#include <map>
#include <memory>
#include <mutex>

#include "dtrun/interfaces.hpp"
#include "dtrun/plugin/environment.hpp"
#include "engine.h"
#include "resources.h"

namespace dtrun::ucx_plugin {
namespace {

constexpr const char* kRequiredChoices[] = {"any", "rdma"};
constexpr int kRequiredRdma = 1;
constexpr const char* kDeviceMemoryChoices[] = {"auto", "staged"};
constexpr int kDeviceMemoryAuto = 0;

constexpr dtrun_option kOptions[] = {
    sdk::Option("transports", DTRUN_TYPE_STRING, nullptr, "transports UCX may use, in the grammar of UCX_TLS")
        .Long(
            "A list such as \"rc,sm,self\", or exclusions: \"^tcp\". Aliases are UCX's: \"sm\" is "
            "shared memory, \"ib\" every InfiniBand and RoCE transport. A name that UCX does not know, or a "
            "list that leaves nothing, is an error that lists what this host has.\n"
            "Unset: UCX_TLS, else everything that UCX offers. When set, ranks also see UCX_TLS.")
        .Alias("UCX_TLS"),
    sdk::Option("devices", DTRUN_TYPE_STRING, nullptr,
                "network devices UCX may use, in the grammar of UCX_NET_DEVICES", DTRUN_SCOPE_HOST)
        .Long("A list such as \"mlx5_0:1,mlx5_1:1\" or \"eth0\", or \"all\". A device that this host lacks "
              "is an error that lists those it has.\n"
              "Unset: UCX_NET_DEVICES, else the RDMA devices. Without RDMA: loopback if all ranks share one "
              "host, else what network.interface found, else the interface of the default route, else the "
              "first that is not loopback. When set, ranks also see UCX_NET_DEVICES.")
        .Alias("UCX_NET_DEVICES"),
    sdk::Option("required", DTRUN_TYPE_ENUM, "any", "what must carry the traffic between hosts")
        .Long("\"rdma\": InfiniBand or RoCE; without it the job ends before it starts, with the reason, "
              "instead of running slowly over TCP. \"any\": any transport.")
        .Choices(kRequiredChoices),
    sdk::Option("rails", DTRUN_TYPE_UINT, nullptr, "devices over which one large message is spread")
        .Long("Unset: UCX decides, which is at most two; it leaves out devices far slower than the fastest.")
        .Range("1", "8")
        .Alias("UCX_MAX_RNDV_RAILS"),
    sdk::Option("p2p", DTRUN_TYPE_ENUM, "auto",
                "whether UCX may let GPUs of a host read each other's memory (cuda_ipc)")
        .Long("For memory of GPUs that UCX moves itself (device_memory), and programs that use UCX. off: "
              "excludes cuda_ipc, so ranks see UCX_TLS=^cuda_ipc, or your exclusions and it, and "
              "DTRUN_P2P=off. on: a host with a UCX without cuda_ipc ends the job before it starts; "
              "DTRUN_P2P=on. auto: off if DTRUN_P2P=off is set, else what UCX offers; unlike nccl, this "
              "backend does not test whether GPUs can read each other. It is an error to combine off with a "
              "list of transports that names cuda_ipc or cuda, or on with one that omits it.")
        .Choices(kP2pChoices),
    sdk::Option("device_memory", DTRUN_TYPE_ENUM, "auto", "how the memory of GPUs goes to other ranks")
        .Long("auto: directly if UCX moves it, which needs a UCX with CUDA or ROCm. Reductions and alltoall "
              "go through host memory, because they need a processor or further memory. staged: everything "
              "goes through host memory, over whichever transport carries that, also shared memory. All "
              "hosts need the same value.")
        .Choices(kDeviceMemoryChoices)};

// Tells programs what was decided on peer access, as the nccl backend does.
constexpr const char* kForPrograms = "DTRUN_P2P";

// The option, else UCX's own variable, which is checked in the same way.
std::optional<std::string> OptionOr(const sdk::Options& options, const char* key, const char* variable) {
  if (std::optional<std::string> value = options.FindString(key)) return value;
  return sdk::EnvironmentVariable(variable);
}

// Collectives in the memory of devices, which no processor may touch, combine nothing and need no memory
// beside their buffers.
bool MovesOnDevices(std::int32_t kind) {
  switch (kind) {
    case DTRUN_SEND:
    case DTRUN_RECV:
    case DTRUN_BROADCAST:
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV:
    case DTRUN_GATHER:
    case DTRUN_GATHERV:
    case DTRUN_SCATTER:
    case DTRUN_SCATTERV: return true;
    default: return false;
  }
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

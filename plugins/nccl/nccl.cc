// The entry point and the backend: which library, which device, what it can do.
#include <sys/statvfs.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm.h"
#include "comm_config.h"
#include "dtrun/interfaces.hpp"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/environment.hpp"
#include "element.h"
#include "gpu_paths.h"
#include "handle.h"
#include "nccl_api.h"
#include "nccl_options.h"
#include "peer_access.h"

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

int CountDevices(const CudaApi& cuda) {
  return cuda.DeviceCount(
      "nccl moves the memory of CUDA devices and this process has none",
      "check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES, or choose backend gloo");
}

class NcclBackend final : public sdk::Backend<NcclCommunicator> {
 public:
  NcclBackend(const sdk::Host& host, const sdk::Options& options)
      : host_(host), options_(options), nccl_(options_.library), config_(options, nccl_.version) {
    if (options_.interface) interface_ = interfaces::Find(interfaces::List(), *options_.interface);
  }

  sdk::Caps QueryCaps() const override {
    sdk::Caps caps = sdk::Caps::Everything();
    caps.reduces = SupportedReduces();
    caps.reduce_dtypes = SupportedTypes();
    caps.device_kinds = sdk::Bits({DTRUN_DEVICE_CUDA});
    caps.stream_order = true;
    caps.detached = caps.capture = true;
    return caps;
  }

  bool Supports(const dtrun_support_query& query) const override {
    return query.reduce == 0 || CanReduce(query.dtype, query.reduce);
  }

  std::unique_ptr<NcclCommunicator> CreateCommunicator(const sdk::CommParams& params) override {
    const sdk::Deadline deadline(params.timeout);
    const sdk::Membership members(params);
    int device = 0;
    try {
      device = DeviceFor(params);
    } catch (const Failure& failure) {
      members.PublishFailure(failure);  // before the others wait for it in NCCL
      members.Come("nccl", "");
      throw;
    }
    members.Join("nccl", "", deadline);
    if (const auto failure = members.FailureOfAnother()) throw *failure;
    WarnOfLostVariables();
    return std::make_unique<NcclCommunicator>(Environment{host_, nccl_, *cuda_, config_}, params, device,
                                              deadline);
  }

  void LaunchInfo(const dtrun_launch_query& query, const sdk::LaunchSink& sink) override {
    const GpuPaths paths = PathsBetweenGpus(query.local_ranks);  // first: it must not find CUDA in use
    sink.Fact("library",
              "NCCL " + nccl_.VersionText() + (nccl_.library.was_loaded() ? " (the program's own)" : ""));
    sink.Fact("library_path", nccl_.library.path());
    sink.Fact("memory", "device");
    sink.Fact("by interface", "interface NCCL_SOCKET_IFNAME");
    sink.Fact("by p2p", "p2p shm NCCL_P2P_DISABLE NCCL_SHM_DISABLE NCCL_IB_DISABLE DTRUN_P2P");
    const auto [devices, obstacle] = Devices();
    sink.Fact("device", obstacle.empty() ? devices : "none: " + obstacle);
    if (!obstacle.empty()) sink.Fact("unusable", obstacle);
    // Between hosts dtrun tells NCCL what has been proven (NCCL_SOCKET_IFNAME).
    if (interface_ || query.host_count <= 1) {
      sink.Fact("interface", interface_ ? interface_->Text() : ChoiceOfNccl());
    }
    for (const auto& [key, text] : paths.facts) sink.Fact(key, text);
    // What one rank must do without, none may use.
    for (const auto& [name, without] :
         {std::pair("NCCL_P2P_DISABLE", "1"), {"NCCL_SHM_DISABLE", "1"}, {"DTRUN_P2P", "off"}})
      sink.Fact(std::string("agree ") + name, without);
    sink.Fact("rdma", RdmaText());
    sink.Fact("algorithm",
              "NCCL's, which it chooses for each call; NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING in "
              "job.env print it");
    for (const auto& [name, value] : paths.variables) sink.Env(name, value);
    for (const auto& [name, value] : Variables()) sink.Env(name, value);
  }

 private:
  GpuPaths PathsBetweenGpus(int local_ranks) const {
    GpuPathInputs inputs;
    inputs.p2p = options_.p2p;
    inputs.shm = options_.shm;
    inputs.local_ranks = local_ranks;
    inputs.inherited = sdk::EnvironmentVariable;
    inputs.ask = [this] { return AskPeers({.cuda_library = options_.cuda_library, .cache = CacheFolder()}); };
    struct statvfs shm {};
    if (statvfs("/dev/shm", &shm) == 0) inputs.shm_free_bytes = std::uint64_t{shm.f_bavail} * shm.f_frsize;
    return ChooseGpuPaths(inputs);
  }

  // The CUDA runtime is looked for when it is needed: a login node has none.
  const CudaApi& Cuda() {
    const std::lock_guard lock(mutex_);
    if (!cuda_) cuda_.emplace(options_.cuda_library, kCudaLibraryOption);
    return *cuda_;
  }

  // The one that dtrun has checked; a host that gives none leaves it to the calling thread.
  int DeviceFor(const sdk::CommParams& params) {
    const CudaApi& cuda = Cuda();
    CountDevices(cuda);
    if (params.device_kind == DTRUN_DEVICE_CUDA) return params.device_index;
    int device = 0;
    cuda.Check(cuda.get_device(&device), "tell the current device");
    return device;
  }

  // What there is, and why there is nothing.
  std::pair<std::string, std::string> Devices() {
    try {
      const CudaApi& cuda = Cuda();
      const int count = CountDevices(cuda);
      return {std::to_string(count) + (count == 1 ? " CUDA device at " : " CUDA devices, the first at ") +
                  cuda.BusId(0) + ", driver for CUDA " + cuda::CudaVersionText(cuda.DriverVersion()),
              ""};
    } catch (const Failure& failure) {
      return {"", failure.what()};
    }
  }

  // NCCL chooses an interface when it makes a unique id, which needs no device.
  std::string ChoiceOfNccl() const {
    nccl::UniqueId id{};
    const nccl::Result result = nccl_.get_unique_id(&id);
    if (result != nccl::kSuccess)
      return std::string("none: ") + NcclFailure(nccl_, "choose an interface", result).what();
    const auto address = ReadBootstrapAddress(id);
    if (!address) return "chosen by NCCL";
    const auto interface = interfaces::FindByAddress(interfaces::List(), address->host);
    return (interface ? interface->Text() : address->host) + " (chosen by NCCL)";
  }

  // Whether NCCL may use RDMA; which ports it would is known to it alone.
  std::string RdmaText() const {
    const auto own = sdk::EnvironmentVariable("NCCL_IB_DISABLE");
    const bool off = own ? own == "1" : options_.rdma == Switch::kOff;
    return off ? "no: NCCL_IB_DISABLE=1" : "yes, by the ports that NCCL finds";
  }

  // What makes the same choices hold for every user of NCCL in this process or beside it.
  std::vector<std::pair<std::string, std::string>> Variables() const {
    std::vector<std::pair<std::string, std::string>> variables;
    // "eth1" alone would also take eth10 and the VLANs on top of it.
    if (interface_) variables.emplace_back("NCCL_SOCKET_IFNAME", "=" + interface_->name);
    const auto add = [&](const char* name, Switch value, const char* off, const char* on) {
      if (value != Switch::kAuto) variables.emplace_back(name, value == Switch::kOff ? off : on);
    };
    add("NCCL_P2P_DISABLE", options_.p2p, "1", "0");
    add("NCCL_SHM_DISABLE", options_.shm, "1", "0");
    add("NCCL_IB_DISABLE", options_.rdma, "1", "0");
    add("NCCL_NET_GDR_LEVEL", options_.gdr, "LOC", "SYS");
    return variables;
  }

  // NCCL reads its variables once, at its first call, which may be long past; so they are set
  // when a rank is started, and never here.
  void WarnOfLostVariables() const {
    const sdk::Log log(host_, "nccl");
    for (const auto& [name, value] : Variables()) {
      const auto now = sdk::EnvironmentVariable(name.c_str());
      if (now == value) continue;
      log.Warn(name + " is " + (now ? "'" + *now + "'" : "unset") + ", not '" + value +
               "' as backend.options asks; a rank must be started by dtrun for that to hold");
    }
  }

  const sdk::Host host_;
  const NcclOptions options_;
  const NcclApi nccl_;
  const CommConfig config_;
  std::optional<interfaces::Interface> interface_;
  std::mutex mutex_;  // of cuda_, which is constant once set
  std::optional<CudaApi> cuda_;
};

}  // namespace
}  // namespace dtrun::nccl_plugin

DTRUN_SDK_PLUGIN(dtrun::nccl_plugin::NcclBackend, .name = "nccl", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0",
                 .summary = "collectives between the memories of NVIDIA GPUs, on CUDA streams",
                 .options = dtrun::nccl_plugin::kOptions,
                 .option_count = std::size(dtrun::nccl_plugin::kOptions))

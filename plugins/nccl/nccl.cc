// The entry point and the backend: its options, which library, which device, what it can do.
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
#include "nccl_api.h"
#include "peer_access.h"

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

constexpr const char* kSwitchChoices[] = {"auto", "on", "off"};
constexpr const char* kCtaPolicies[] = {"auto", "efficiency", "zero"};
constexpr const char* kGraphUsages[] = {"auto", "none", "one", "mixed"};

constexpr sdk::OptionRow SwitchOption(const char* key, const char* doc) {
  return sdk::Option(key, DTRUN_TYPE_ENUM, "auto", doc).Choices(kSwitchChoices);
}

constexpr dtrun_option kOptions[] = {
    sdk::Option("library", DTRUN_TYPE_PATH, nullptr, "file of the NCCL library", DTRUN_SCOPE_HOST)
        .Flags(DTRUN_OPTION_MUST_EXIST)
        .Long("Unset: the libnccl.so.2 that is already in the process, as torch brings one; else the "
              "loader's; else that of pip's wheels of the python3 that is first on PATH."),
    sdk::Option("cuda_library", DTRUN_TYPE_PATH, nullptr, "file of the CUDA runtime library",
                DTRUN_SCOPE_HOST)
        .Flags(DTRUN_OPTION_MUST_EXIST)
        .Long(
            "Unset: the libcudart that is already in the process; else the loader's libcudart.so.13, .12 or "
            ".11.0, or one of pip's wheels, as for library."),
    sdk::Option("interface", DTRUN_TYPE_STRING, nullptr,
                "network interface that carries the traffic between hosts, by name, address or network",
                DTRUN_SCOPE_HOST)
        .Long("A name such as \"eth0\", an address of this host such as \"10.0.0.5\", or a network such as "
              "\"10.0.0.0/16\", which fits hosts that name their interfaces differently. Ranks see "
              "NCCL_SOCKET_IFNAME with the exact name (\"=eth0\"), so that programs that use NCCL through "
              "torch "
              "use the same interface.\n"
              "Unset: NCCL chooses.")
        .Alias("NCCL_SOCKET_IFNAME"),
    SwitchOption("p2p", "whether GPUs of one host read each other's memory")
        .Long(
            "auto: before the ranks start, each pair of GPUs makes a verified and timed copy in a child "
            "process, at most 2 s for a pair and 5 s in all. Ranks see NCCL_P2P_DISABLE=1 if access that the "
            "driver claims fails, hangs, corrupts data, is far too slow or works one way only. The result is "
            "cached until the next boot. on: if a pair has no access, the job ends before it starts. off: "
            "ranks see NCCL_P2P_DISABLE=1.\n"
            "Programs with peer copies of their own can read DTRUN_P2P: on, off, or unset if unknown.")
        .Alias("NCCL_P2P_DISABLE"),
    SwitchOption("shm", "whether GPUs of one host may exchange data through host memory")
        .Long("off: ranks see NCCL_SHM_DISABLE=1. on: NCCL_SHM_DISABLE=0. auto: off if peer access is off "
              "and /dev/shm has less than 32 MiB left for each rank, else the variable is unchanged.")
        .Alias("NCCL_SHM_DISABLE"),
    SwitchOption("rdma", "whether InfiniBand and RoCE are used between hosts")
        .Long(
            "off: ranks see NCCL_IB_DISABLE=1 and use sockets. on: NCCL_IB_DISABLE=0. auto: the variable is "
            "unchanged.")
        .Alias("NCCL_IB_DISABLE"),
    SwitchOption("gdr", "whether network cards read and write GPU memory themselves")
        .Long("off: ranks see NCCL_NET_GDR_LEVEL=LOC. on: NCCL_NET_GDR_LEVEL=SYS, at any distance. auto: the "
              "variable is unchanged.")
        .Alias("NCCL_NET_GDR_LEVEL"),
    // What follows configures each communicator: comm_config.h.
    sdk::Option("net_name", DTRUN_TYPE_STRING, nullptr, "network module of NCCL that carries the traffic")
        .Long("\"IB\", \"Socket\", or the name that a plugin of NCCL's has.\nUnset: NCCL chooses.")
        .Alias("NCCL_NET"),
    sdk::Option("cga_cluster_size", DTRUN_TYPE_INT, nullptr,
                "thread blocks of NCCL's kernels that the GPU places together")
        .Long("Unset: NCCL chooses: 4 from compute capability 9.0 on, else 0.")
        .Range("0", "8")
        .Alias("NCCL_CGA_CLUSTER_SIZE"),
    sdk::Option("min_ctas", DTRUN_TYPE_INT, nullptr, "fewest thread blocks of the GPU for one operation")
        .Long("Unset: NCCL chooses.")
        .Range("1", "64")
        .Alias("NCCL_MIN_CTAS"),
    sdk::Option("max_ctas", DTRUN_TYPE_INT, nullptr,
                "most thread blocks of the GPU that one operation may occupy")
        .Long("Fewer leave more of the GPU to computation and use less memory; more move data faster.\n"
              "Unset: NCCL chooses.")
        .Range("1", "64")
        .Alias("NCCL_MAX_CTAS"),
    sdk::Option("cta_policy", DTRUN_TYPE_ENUM, "auto",
                "how NCCL weighs speed against the GPU's thread blocks")
        .Choices(kCtaPolicies)
        .Long("auto: unchanged. efficiency: as few as give decent speed, so that computation overlaps better "
              "(NCCL 2.27). zero: none where NCCL can do without, which needs memory that is registered "
              "symmetrically on all ranks (NCCL 2.28).")
        .Alias("NCCL_CTA_POLICY"),
    sdk::Option("nvls_ctas", DTRUN_TYPE_INT, nullptr, "thread blocks for sums in NVLink switches")
        .Long("Needs NCCL 2.27.\nUnset: NCCL chooses.")
        .Range("1", "64"),
    SwitchOption("collnet", "whether switches of the network may sum (SHARP)")
        .Long("Needs NCCL 2.27. auto: the configuration is unchanged.")
        .Alias("NCCL_COLLNET_ENABLE"),
    sdk::Option("traffic_class", DTRUN_TYPE_INT, nullptr, "traffic class of the network's packets")
        .Long("Service level of InfiniBand, type of service of RoCE. NCCL_IB_SL and NCCL_IB_TC win over it. "
              "Needs NCCL 2.26.\nUnset: NCCL chooses.")
        .Range("0", "255"),
    sdk::Option("channels_per_net_peer", DTRUN_TYPE_INT, nullptr, "network channels for each pair of ranks")
        .Long("More make messages faster, alltoall often slower. Needs NCCL 2.28.\nUnset: NCCL chooses.")
        .Range("1", "64")
        .Alias("NCCL_NCHANNELS_PER_NET_PEER"),
    SwitchOption("nvlink_centric_sched", "whether operations are scheduled for NVLink first")
        .Long("Needs NCCL 2.28. auto: the configuration is unchanged."),
    sdk::Option("max_p2p_peers", DTRUN_TYPE_INT, nullptr,
                "most ranks that a rank exchanges messages with at a time")
        .Long("Needs NCCL 2.30.\nUnset: NCCL chooses.")
        .Range("1", "1048576"),
    sdk::Option("graph_usage", DTRUN_TYPE_ENUM, "auto", "which CUDA graphs hold operations")
        .Choices(kGraphUsages)
        .Long("none, one: operations then need no event more to keep their order. mixed: several graphs, or "
              "operations beside graphs, which is NCCL's default. Needs NCCL 2.29. auto: unchanged.")
        .Alias("NCCL_GRAPH_MIXING_SUPPORT")};

struct NcclOptions {
  explicit NcclOptions(const sdk::Options& options)
      : library(options.FindString("library").value_or("")),
        cuda_library(options.FindString("cuda_library").value_or("")),
        interface(options.FindString("interface")),
        p2p(static_cast<Switch>(options.EnumIndex("p2p"))),
        shm(static_cast<Switch>(options.EnumIndex("shm"))),
        rdma(static_cast<Switch>(options.EnumIndex("rdma"))),
        gdr(static_cast<Switch>(options.EnumIndex("gdr"))) {}

  std::string library;       // empty: find it
  std::string cuda_library;  // empty: find it
  std::optional<std::string> interface;
  Switch p2p;
  Switch shm;
  Switch rdma;
  Switch gdr;
};

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
    if (const std::string obstacle = Devices().second; !obstacle.empty())
      throw Failure(DTRUN_FAILED_PRECONDITION, obstacle);  // as "unusable" said at launch
    const CudaApi& cuda = Cuda();
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

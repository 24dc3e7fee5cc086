#include "gpu_paths.h"

namespace dtrun::nccl_plugin {
namespace {

// For programs with peer copies of their own, which NCCL_P2P_DISABLE does not reach: custom
// all-reduce kernels, single-process DataParallel (OpenRLHF/OpenRLHF#1064).
constexpr const char* kForPrograms = "DTRUN_P2P";
constexpr const char* kP2pDisable = "NCCL_P2P_DISABLE";
constexpr const char* kShmDisable = "NCCL_SHM_DISABLE";

// What NCCL takes of /dev/shm for a rank, by experience: 64 MiB, which containers get, do for two
// ranks and not for eight (NVIDIA/nccl#290).
constexpr std::uint64_t kShmPerRank = std::uint64_t{32} << 20;

// For `dtrun explain`: each device, and each pair of them with what was found.
void AddPairs(const PeerReport& report, GpuPaths& paths) {
  for (std::size_t device = 0; device < report.devices.size(); ++device)
    paths.facts.emplace_back("peer " + std::to_string(device), report.devices[device]);
  for (const PeerPair& pair : report.pairs)
    paths.facts.emplace_back("peer " + std::to_string(pair.from) + ">" + std::to_string(pair.to),
                             VerdictText(pair));
}

// Whether peers meet directly; unset: unknown.
std::optional<bool> ChoosePeers(const GpuPathInputs& inputs, GpuPaths& paths) {
  const auto fact = [&](const std::string& text) { paths.facts.emplace_back("p2p", text); };
  if (inputs.p2p == Switch::kOff) {
    fact("off, as backend.options.p2p says");
    return false;
  }
  if (const auto own = inputs.inherited(kP2pDisable); own && inputs.p2p == Switch::kAuto) {
    fact("as NCCL_P2P_DISABLE=" + *own + " of your environment says; not tried");
    return *own != "1";
  }
  if (inputs.local_ranks < 2 && inputs.p2p == Switch::kAuto) return std::nullopt;
  const PeerReport report = inputs.ask();
  if (report.devices.empty() && report.trouble.empty())
    return std::nullopt;  // no GPU, which is said elsewhere
  const PeerVerdict verdict = Judge(report);
  AddPairs(report, paths);
  if (inputs.p2p == Switch::kOn) {
    if (verdict.obstacle) {
      throw sdk::Failure(DTRUN_FAILED_PRECONDITION, "backend.options.p2p is \"on\", but " +
                                                        *verdict.obstacle +
                                                        "; \"auto\" goes round it, \"off\" does without");
    }
  } else if (!verdict.usable) {
    paths.variables.emplace_back(kP2pDisable, "1");
  }
  fact((verdict.usable ? "on: " : "off: ") + verdict.reason);
  if (!report.trouble.empty()) return std::nullopt;
  return verdict.usable;
}

}  // namespace

GpuPaths ChooseGpuPaths(const GpuPathInputs& inputs) {
  GpuPaths paths;
  const std::optional<bool> peers = ChoosePeers(inputs, paths);
  if (peers) paths.variables.emplace_back(kForPrograms, *peers ? "on" : "off");
  if (peers == false && inputs.shm == Switch::kAuto && !inputs.inherited(kShmDisable) &&
      inputs.shm_free_bytes < kShmPerRank * static_cast<std::uint64_t>(inputs.local_ranks)) {
    paths.variables.emplace_back(kShmDisable, "1");
    paths.facts.emplace_back("shm", "off: /dev/shm has " + std::to_string(inputs.shm_free_bytes >> 20) +
                                        " MiB left for " + std::to_string(inputs.local_ranks) +
                                        " ranks; give the container more (docker run --shm-size)");
  }
  return paths;
}

}  // namespace dtrun::nccl_plugin

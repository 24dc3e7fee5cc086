#include "peer_trial.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <vector>

#include "device_memory.h"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/process_watch.hpp"

namespace dtrun::nccl_plugin {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBytes = std::size_t{1} << 20;
// Peers that take so many times as long as a copy through the host are broken in fact: NCCL would
// choose them all the same (ray-project/ray#39471, 49 ms a hop).
constexpr int kTooSlow = 20;
constexpr int kAgain = 3;

struct Pair {
  int from;
  int to;
  std::string Text() const { return std::to_string(from) + " " + std::to_string(to); }
};

class Trial {
 public:
  Trial(const CudaApi& cuda, const TrialSink& sink) : cuda_(cuda), sink_(sink), pattern_(kBytes) {
    std::uint32_t state = 1;
    for (unsigned char& byte : pattern_)
      byte = static_cast<unsigned char>((state = state * 1664525u + 1013904223u) >> 24);
  }

  void Open(int device) {
    sink_("opening " + std::to_string(device));
    const OnDevice here(cuda_, device);
    buffers_.emplace_back(cuda_, kBytes, "device " + std::to_string(device));
  }

  // REQUIRES: both are open, in the order of their numbers. The device `to` reads that of `from`.
  void Try(const Pair& pair) {
    sink_("trying " + pair.Text());
    int claimed = 0;
    cuda_.Check(cuda_.can_access_peer(&claimed, pair.to, pair.from), "ask for peer access");
    if (claimed == 0) return sink_("refused " + pair.Text() + " the driver says that it cannot");
    const std::string denial = nvml_.Denial(cuda_.BusId(pair.to), cuda_.BusId(pair.from));
    if (!denial.empty()) return sink_("refused " + pair.Text() + " NVML says " + denial);
    try {
      sink_(Measure(pair));
    } catch (const sdk::Failure& failure) {
      sink_("broken " + pair.Text() + " " + failure.what());
    }
  }

 private:
  void* Of(int device) const { return buffers_[static_cast<std::size_t>(device)].data(); }

  void Synchronize() const { cuda_.Check(cuda_.stream_synchronize(nullptr), "finish the copy"); }
  void Copy(void* to, const void* from, int kind, int device) const {
    const OnDevice here(cuda_, device);
    cuda_.Check(cuda_.memcpy_async(to, from, kBytes, kind, nullptr), "copy 1 MiB");
    Synchronize();
  }
  void CopyBetween(const Pair& pair) const {
    const OnDevice here(cuda_, pair.to);
    cuda_.Check(cuda_.memcpy_peer_async(Of(pair.to), pair.to, Of(pair.from), pair.from, kBytes, nullptr),
                "copy 1 MiB");
    Synchronize();
  }

  Clock::duration TimeOfCopy(const Pair& pair) const {
    const auto began = Clock::now();
    CopyBetween(pair);
    return Clock::now() - began;
  }

  Clock::duration TimeThroughHost(const Pair& pair, std::vector<unsigned char>* host) const {
    const auto began = Clock::now();
    Copy(host->data(), Of(pair.from), cuda::kCopyDeviceToHost, pair.from);
    Copy(Of(pair.to), host->data(), cuda::kCopyHostToDevice, pair.to);
    return Clock::now() - began;
  }

  std::string Measure(const Pair& pair) {
    {
      const OnDevice here(cuda_, pair.to);
      const cuda::Error error = cuda_.Handled(cuda_.enable_peer_access(pair.from, 0));
      if (error != cuda::kPeerAccessAlreadyEnabled) cuda_.Check(error, "enable peer access");
    }
    std::vector<unsigned char> got(kBytes);
    Copy(Of(pair.from), pattern_.data(), cuda::kCopyHostToDevice, pair.from);
    Copy(Of(pair.to), got.data(), cuda::kCopyHostToDevice, pair.to);  // zeros
    CopyBetween(pair);
    auto direct = TimeOfCopy(pair);
    Copy(got.data(), Of(pair.to), cuda::kCopyDeviceToHost, pair.to);
    if (std::memcmp(got.data(), pattern_.data(), kBytes) != 0)
      return "broken " + pair.Text() + " the copy arrives corrupt";

    // A busy host may take the processor away, and a copy through it that seems slow would hide a pair that
    // is; a pair that is slow is slow again.
    auto staged = TimeThroughHost(pair, &got);
    for (int again = 1; again < kAgain; ++again) staged = std::min(staged, TimeThroughHost(pair, &got));
    for (int again = 0; direct > kTooSlow * staged && again < kAgain; ++again)
      direct = std::min(direct, TimeOfCopy(pair));
    const double seconds = std::chrono::duration<double>(direct).count();
    if (direct > kTooSlow * staged) {
      std::ostringstream text;
      text.precision(3);
      text << "broken " << pair.Text() << " 1 MiB takes " << seconds * 1e3 << " ms, through the host "
           << std::chrono::duration<double, std::milli>(staged).count() << " ms";
      return text.str();
    }
    return "proven " + pair.Text() + " " +
           std::to_string(static_cast<long long>(static_cast<double>(kBytes) / seconds));
  }

  const CudaApi& cuda_;
  const TrialSink& sink_;
  const Nvml nvml_;
  std::vector<unsigned char> pattern_;
  std::vector<DeviceBuffer> buffers_;
};

// Values of nvml.h since driver 375.
constexpr int kSuccess = 0;
constexpr int kRead = 0;  // nvmlGpuP2PCapsIndex_t
constexpr int kWrite = 1;

const char* StatusText(int status) {  // nvmlGpuP2PStatus_t
  switch (status) {
    case 1: return "that the chipset does not support it";
    case 2: return "that the GPU does not support it";
    case 3: return "that the topology does not support it";
    case 4: return "that it is disabled in the driver's settings";
    case 5: return "that it is not supported";
    default: return "that its state is unknown";
  }
}

}  // namespace

void TryPeers(const CudaApi& cuda, const TrialMemory& memory, const TrialSink& sink) {
  int count = 0;
  if (cuda.get_device_count(&count) != cuda::kSuccess || count == 0) return sink("none");
  int driver = 0;
  cuda.Check(cuda.driver_get_version(&driver), "tell the driver's version");
  const std::string boot = sdk::BootId();
  std::string key = std::to_string(driver) + " " + (boot.empty() ? "unknown" : boot);
  std::vector<std::string> devices;
  for (int device = 0; device < count; ++device) {
    devices.push_back(cuda.BusId(device));
    key += " " + devices.back();
  }
  sink("key " + key);
  for (int device = 0; device < count; ++device)
    sink("device " + std::to_string(device) + " " + devices[static_cast<std::size_t>(device)]);
  if (const std::string known = memory(key); !known.empty()) {
    sink("cached");
    std::istringstream lines(known);
    for (std::string line; std::getline(lines, line);) sink(line);
  } else if (count > 1) {
    Trial trial(cuda, sink);
    for (int device = 0; device < count; ++device) trial.Open(device);
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to) {
        if (to != from) trial.Try({from, to});
      }
    }
  }
  sink("done");
}

Nvml::Nvml() {
  try {
    const auto library = sdk::SharedLibrary::Open({"libnvidia-ml.so.1"}, "NVML", "it comes with the driver");
    int (*const init)() = library["nvmlInit_v2"];
    shutdown_ = library["nvmlShutdown"];
    find_ = library["nvmlDeviceGetHandleByPciBusId_v2"];
    p2p_status_ = library["nvmlDeviceGetP2PStatus"];
    if (init() == kSuccess) library_ = library;
  } catch (const sdk::Failure&) {
    // Without it the copy decides alone.
  }
}

Nvml::~Nvml() {
  if (library_) shutdown_();
}

std::string Nvml::Denial(const std::string& reader, const std::string& owner) const {
  Device first = nullptr;
  Device second = nullptr;
  if (!library_ || find_(reader.c_str(), &first) != kSuccess || find_(owner.c_str(), &second) != kSuccess)
    return {};
  for (const int index : {kRead, kWrite}) {
    int status = 0;
    if (p2p_status_(first, second, index, &status) == kSuccess && status != 0) return StatusText(status);
  }
  return {};
}

}  // namespace dtrun::nccl_plugin

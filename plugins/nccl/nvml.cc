#include "nvml.h"

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

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

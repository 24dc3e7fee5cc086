// Tries whether the GPUs of this host read each other's memory: what the driver says of each pair,
// and a verified and timed copy.
//
// Touches every visible device and may hang where the answer is no, so it belongs into a child
// process (peer_access.h). The report is text, a line for each fact, flushed before the step that
// it announces:
//
//     none                            no usable device
//     key DRIVER BOOT_ID BUS_ID ...
//     device INDEX BUS_ID
//     cached                          nothing was tried; what follows is what was found earlier
//     opening DEVICE
//     trying FROM TO
//     refused FROM TO REASON          the driver or NVML says no
//     broken FROM TO REASON           claimed, and not so
//     proven FROM TO BYTES_PER_SECOND
//     done
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "../cuda/cuda_api.h"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::nccl_plugin {

// Gets lines without their newline.
using TrialSink = std::function<void(const std::string& line)>;
// The lines that are kept for a key; empty: none.
using TrialMemory = std::function<std::string(const std::string& key)>;

// Throws sdk::Failure when a device cannot be used.
void TryPeers(const cuda::CudaApi& cuda, const TrialMemory& memory, const TrialSink& sink);

// What NVIDIA's management library says of two devices. Absent where there is no driver; then
// it says nothing. Constant once made; any thread.
class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Why `reader` may not read or write the memory of `owner`, both PCI bus ids, in NVML's words;
  // empty when it may, or when that is not known.
  std::string Denial(const std::string& reader, const std::string& owner) const;

 private:
  using Device = void*;  // nvmlDevice_t

  std::optional<sdk::SharedLibrary> library_;
  int (*shutdown_)() = nullptr;
  int (*find_)(const char* bus_id, Device* device) = nullptr;
  int (*p2p_status_)(Device, Device, int index, int* status) = nullptr;
};

}  // namespace dtrun::nccl_plugin

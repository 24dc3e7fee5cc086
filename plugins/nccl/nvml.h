// What NVIDIA's management library says of two devices. Absent where there is no driver; then
// it says nothing. Constant once made; any thread.
#pragma once

#include <optional>
#include <string>

#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::nccl_plugin {

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

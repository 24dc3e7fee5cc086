// The memory of devices: what UCX moves of it in this process, which pointer is whose, and what a thread
// needs that drives UCX with it.
//
// One per backend, constant once made; any thread. UCX that was built without CUDA and ROCm, or finds no
// device, moves none. Not yet run on a GPU: tested over fakes (testing/fake_ucx.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "context.h"

namespace dtrun::ucx_plugin {

class DeviceMemory {
 public:
  // None: the user wants it so.
  DeviceMemory() : why_("as backend.options.device_memory says") {}
  // Asks a context of UCX with `selection`, whose transports decide it.
  DeviceMemory(const Library& library, const Selection& selection);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Bits DTRUN_DEVICE_* of the devices whose memory UCX moves; 0: none.
  std::uint64_t kinds() const;
  // "direct (UCX with cuda)", "staged, because ..."
  std::string Text() const;

  // HOST when it is of no device of kinds(). Asks the device's library: about 100 ns.
  ucs_memory_type_t TypeOf(const void* buffer) const;

 private:
  const Library* library_ = nullptr;
  std::vector<uct_md_h> domains_;  // that know devices
  std::uint64_t types_ = 0;        // bits UCS_MEMORY_TYPE_*
  std::string why_;                // none, when types_ is 0
};

}  // namespace dtrun::ucx_plugin

// A communicator's view of devices: the plugin of each kind, and the backend that carries its memory.
//
// All communicators of a rank get the same answers; all ranks get the same carriers. Owned by the runtime;
// any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/comm/route.h"
#include "dtrun/abi/device.h"

namespace dtrun::comm {

// A device plugin and its instance, which live as long as the process.
struct Device {
  const dtrun_device* table = nullptr;  // full table
  dtrun_instance* instance = nullptr;
  std::string name;  // "cuda"
};

// The name of a kind in messages: "cuda". If the ABI has no name for it, that of its device plugin once
// loaded. Any thread.
std::string KindName(std::int32_t kind);
void NameKind(std::int32_t kind, const std::string& name);

class Devices {
 public:
  virtual ~Devices() = default;
  // Loads the plugin on first use. Errors say where it was searched for, or why it cannot serve.
  virtual Result<const Device*> Plugin(std::int32_t kind) = 0;
  // The job's device backend; else the host's if it moves that memory; else staging over the host's.
  virtual Result<Carrier> CarrierOf(std::int32_t kind) = 0;
};

}  // namespace dtrun::comm

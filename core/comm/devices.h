// What a communicator knows of devices: the plugin of each kind, and what carries its memory.
//
// The same answers for all communicators of a rank and, as to carriers, on all ranks. Owned by the runtime;
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

// What messages call a kind: "cuda"; of one that the ABI has no name for, that of its device plugin, once
// that is loaded. Any thread.
std::string KindName(std::int32_t kind);
void NameKind(std::int32_t kind, const std::string& name);

class Devices {
 public:
  virtual ~Devices() = default;
  // Loads the plugin at first use. Errors say where it was looked for, or why it cannot serve.
  virtual Result<const Device*> Plugin(std::int32_t kind) = 0;
  // The device backend of the job; else the host's, where it moves that memory; else staging over the host's.
  virtual Result<Carrier> CarrierOf(std::int32_t kind) = 0;
};

}  // namespace dtrun::comm

// What backend.name asks for: names in order of preference, or one for each kind of memory.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/config/settings.h"

namespace dtrun::config {

struct BackendChoice {
  std::vector<std::string> names;  // each once, in order of preference; those of "auto" spelled out
  bool automatic = false;          // "auto"
  // "cpu:gloo,cuda:nccl", the grammar of torch.distributed. All empty: no kind of memory is named.
  std::string host;         // of the processors' memory: "gloo"
  std::string device;       // of a device's: "nccl"
  std::string device_kind;  // which: "cuda", as the plugin of that device is called

  bool by_memory() const { return !host.empty() || !device.empty(); }
  // Whether the next name is tried where one cannot be used.
  bool falls_back() const { return names.size() > 1 && !by_memory(); }
};

// `devices`: the plugins of devices that exist.
Result<BackendChoice> ReadBackendChoice(const options::Data& name, const std::vector<std::string>& devices);

// That of the config. One that Load refuses has the texts as they are for names.
BackendChoice BackendChoiceOf(const Settings& settings);

// Backends of host memory in the order of "auto": one of them joins the ranks beside a backend that moves
// device memory only, unless another is named.
const std::vector<std::string>& HostBackends();

// Whether dtrun has a plugin of that name, though it need not be installed here.
bool IsOwnBackend(std::string_view name);

// Whether `name`, which no plugin here has, is a slip of one of `known`.
bool IsSlip(std::string_view name, const std::vector<std::string>& known);

// Whether "auto" expects the backend to move device memory: of one that cannot be asked nothing else is
// known.
bool IsDeviceBackend(std::string_view name);

}  // namespace dtrun::config

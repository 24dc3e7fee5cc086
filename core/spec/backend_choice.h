// The meaning of backend.name: names in order of preference, or one for each kind of memory.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/spec/job_spec.h"

namespace dtrun::spec {

struct BackendChoice {
  std::vector<std::string> names;  // without duplicates, in order of preference; "auto" expanded
  bool automatic = false;          // "auto"
  // "cpu:gloo,cuda:nccl", in the grammar of torch.distributed. All empty: no kind of memory is
  // named.
  std::string host;         // for host memory: "gloo"
  std::string device;       // for device memory: "nccl"
  std::string device_kind;  // the device plugin's name: "cuda"

  bool by_memory() const { return !host.empty() || !device.empty(); }
  // Whether dtrun tries the next name if one cannot be used.
  bool falls_back() const { return names.size() > 1 && !by_memory(); }
};

// `devices`: the device plugins that exist.
Result<BackendChoice> ReadBackendChoice(const options::Data& name, const std::vector<std::string>& devices);

// The choice in the config. If Load rejects it, the texts are taken as plain names.
BackendChoice BackendChoiceOf(const JobSpec& spec);

// Its names.
std::vector<std::string> BackendNames(const JobSpec& spec);

// Host-memory backends in the order of "auto". Beside a backend that moves device memory only, one of them
// joins the ranks unless another is named.
const std::vector<std::string>& HostBackends();

// Whether dtrun has a plugin of that name, which need not be installed here.
bool IsOwnBackend(std::string_view name);

// Whether `name`, which no plugin here has, is probably a typo of one of `known`.
bool IsSlip(std::string_view name, const std::vector<std::string>& known);

// Whether "auto" expects the backend to move device memory; used when the backend cannot be queried.
bool IsDeviceBackend(std::string_view name);

}  // namespace dtrun::spec

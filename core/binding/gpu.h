// The GPUs of one host as a rank's program would count them: those the system shows, restricted by
// the lists that users and schedulers set.
//
// Loads no vendor library: /proc, /dev and /sys have all the information. Ignores
// NVIDIA_VISIBLE_DEVICES on purpose: container runtimes apply it before the container starts, and
// CUDA does not read it. Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/wire/limits.h"

namespace dtrun::binding {

struct Gpu {
  std::string uuid;  // "GPU-…"; empty if the system does not report it
  int numa = -1;     // its NUMA node; -1: unknown
  std::string name;  // its entry in a visible-devices list: an index, or as the user wrote it
  void Fields(auto& io) {
    io("uuid", uuid, wire::kMostName);
    io("numa", numa, wire::Between{-1, 1 << 20});
    io("name", name, wire::kMostName);
  }
  bool operator==(const Gpu&) const = default;
};

enum class Vendor { kNvidia, kAmd };

struct Gpus {
  Vendor vendor = Vendor::kNvidia;
  std::vector<Gpu> devices;
  void Fields(auto& io) {
    io("vendor", vendor, wire::Between{Vendor::kNvidia, Vendor::kAmd});
    io("devices", devices, wire::kMostProcesses);
  }
  bool operator==(const Gpus&) const = default;
};

// NVIDIA's devices if there are any, sorted by PCI address, which is how CUDA numbers equal
// devices; else AMD's in the driver's order. `root` is "/" except in tests.
Gpus ReadGpus(const std::filesystem::path& root);

// A variable's value in the environment that ranks inherit; nullopt: unset.
using Variable = std::function<std::optional<std::string>(const char* name)>;

// The subset of `gpus` that CUDA_VISIBLE_DEVICES, or ROCR_ and HIP_VISIBLE_DEVICES, select.
std::vector<Gpu> VisibleGpus(const Gpus& gpus, const Variable& variable);

// The devices that one list selects, named as in the list. Parses it as CUDA does (and PyTorch's
// torch/cuda/__init__.py, _parse_visible_devices): an entry that names no device ends the list, a repeated
// entry empties it, a UUID may be abbreviated, spaces are ignored. MIG slices are in no file, so any entry in
// CUDA's MIG syntax counts.
std::vector<Gpu> Select(const std::vector<Gpu>& devices, std::string_view list);

// The variables that restrict the visible devices, for messages: "CUDA_VISIBLE_DEVICES is '0,99'", for AMD
// joined with "and"; empty if there are none.
std::string ListText(Vendor vendor, const Variable& variable);

// Whether a list selects nothing on purpose: "", "-1", "none" and the values that schedulers write.
bool MeansNone(std::string_view list);

// The variable that restricts the visible devices: set per rank by job.gpu_visibility = "own".
const char* ListVariable(Vendor vendor);

// The variable's value for each of `ranks`: equal contiguous parts. With fewer devices than ranks, the error
// names the restricting variables (ListText) and the number of devices on the host.
Result<std::vector<std::string>> OwnLists(const std::vector<Gpu>& visible, int ranks, const std::string& list,
                                          std::size_t there);

}  // namespace dtrun::binding

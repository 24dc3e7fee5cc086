// The GPUs of one host as a rank's program would count them: those the system shows, after
// the lists that users and schedulers narrow them with.
//
// Nothing of a vendor's is loaded: /proc, /dev and /sys say it all. NVIDIA_VISIBLE_DEVICES
// is not looked at on purpose: container runtimes apply it before the container starts, and
// CUDA does not read it. Any thread.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dtrun::binding {

struct Gpu {
  std::string uuid;  // "GPU-…"; empty where the system does not say
  int numa = -1;     // NUMA node that it is attached to; -1: not said
  std::string name;  // what a visible-devices list would call it: an index, or as the user wrote it
  bool operator==(const Gpu&) const = default;
};

enum class Vendor { kNvidia, kAmd };

struct Gpus {
  Vendor vendor = Vendor::kNvidia;
  std::vector<Gpu> devices;
  bool operator==(const Gpus&) const = default;
};

// In the order of their PCI addresses, which is how CUDA numbers equal devices; of AMD's, in
// the driver's order. NVIDIA's, when there are any. `root` is "/" but in tests.
Gpus ReadGpus(const std::filesystem::path& root);

// A variable's value in the environment that ranks inherit; nothing: unset.
using Variable = std::function<std::optional<std::string>(const char* name)>;

// What CUDA_VISIBLE_DEVICES, or ROCR_ and HIP_VISIBLE_DEVICES, leave of `gpus`.
std::vector<Gpu> VisibleGpus(const Gpus& gpus, const Variable& variable);

// The devices that one list selects, with their names in it. As CUDA reads it (and PyTorch's
// torch/cuda/__init__.py, _parse_visible_devices): an entry that names no device ends the
// list, one that repeats another empties it, a UUID may be cut short, spaces do not matter. A slice of a
// device is in no file, so that one that is written as CUDA writes it counts.
std::vector<Gpu> Select(const std::vector<Gpu>& devices, std::string_view list);

// How the environment narrows what a program sees, for messages: "CUDA_VISIBLE_DEVICES is '0,99'", AMD's with
// "and" between them; empty when it does not.
std::string ListText(Vendor vendor, const Variable& variable);

// Whether a list that selects nothing is meant so: "", "-1", "none" and what schedulers write.
bool MeansNone(std::string_view list);

// The variable that narrows what a program sees: set per rank by job.gpu_visibility = "own".
const char* ListVariable(Vendor vendor);

// Its value for each of `ranks`: equal contiguous parts. Fewer devices than ranks: an error, which names what
// narrows them (ListText) and how many the host has.
Result<std::vector<std::string>> OwnLists(const std::vector<Gpu>& visible, int ranks, const std::string& list,
                                          std::size_t there);

}  // namespace dtrun::binding

#include "core/binding/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <system_error>

#include "core/base/number.h"
#include "core/base/text.h"

namespace dtrun::binding {
namespace {

namespace fs = std::filesystem;

// Lines "name<separator>value" of a file; empty if the file does not exist.
std::map<std::string, std::string> ReadFields(const fs::path& file, char separator) {
  std::map<std::string, std::string> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos) continue;
    out[std::string(Trim(line.substr(0, at)))] = Trim(std::string_view(line).substr(at + 1));
  }
  return out;
}

template <class T>
T FieldNumber(const std::map<std::string, std::string>& fields, const char* name, T otherwise) {
  const auto found = fields.find(name);
  return found == fields.end() ? otherwise : NumberOf<T>(found->second).value_or(otherwise);
}

int NumaOf(const fs::path& root, const std::string& pci) {
  std::ifstream in(root / "sys/bus/pci/devices" / pci / "numa_node");
  int node = -1;
  return in >> node ? node : -1;
}

std::vector<std::string> SortedNames(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}

// The numbers after `prefix` in the folder's entries named so, ascending.
std::vector<int> NumbersAfter(const fs::path& folder, std::string_view prefix) {
  std::vector<int> out;
  for (const std::string& name : SortedNames(folder)) {
    if (!name.starts_with(prefix)) continue;
    if (const auto number = NumberOf<int>(std::string_view(name).substr(prefix.size())))
      out.push_back(*number);
  }
  std::ranges::sort(out);
  return out;
}

// A container may see the driver's list of all devices but have access only to those in /dev.
std::vector<Gpu> ReadNvidia(const fs::path& root) {
  const std::vector<int> given = NumbersAfter(root / "dev", "nvidia");
  std::vector<Gpu> out;
  for (const std::string& pci : SortedNames(root / "proc/driver/nvidia/gpus")) {
    const auto fields = ReadFields(root / "proc/driver/nvidia/gpus" / pci / "information", ':');
    if (std::ranges::find(given, FieldNumber(fields, "Device Minor", -1)) == given.end()) continue;
    const auto uuid = fields.find("GPU UUID");
    out.push_back({uuid == fields.end() ? "" : uuid->second, NumaOf(root, pci), ""});
  }
  if (out.empty()) out.resize(given.size());
  return out;
}

// https://docs.kernel.org/gpu/amdgpu: the kfd driver's topology. Nodes without SIMDs are processors.
std::vector<Gpu> ReadAmd(const fs::path& root) {
  const fs::path nodes = root / "sys/class/kfd/kfd/topology/nodes";
  std::vector<Gpu> out;
  for (int node : NumbersAfter(nodes, "")) {
    const auto fields = ReadFields(nodes / std::to_string(node) / "properties", ' ');
    const int render = FieldNumber(fields, "drm_render_minor", -1);
    std::error_code failure;
    if (FieldNumber(fields, "simd_count", 0) == 0 ||
        !fs::exists(root / "dev/dri" / fmt::format("renderD{}", render), failure)) {
      continue;
    }
    const auto location = FieldNumber<unsigned>(fields, "location_id", 0);
    const std::string pci =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", FieldNumber<unsigned>(fields, "domain", 0),
                    (location >> 8U) & 0xffU, (location >> 3U) & 0x1fU, location & 7U);
    const auto id = FieldNumber<unsigned long long>(fields, "unique_id", 0);
    out.push_back({id == 0 ? "" : fmt::format("GPU-{:016x}", id), NumaOf(root, pci), ""});
  }
  return out;
}

// The single device with a UUID that starts with `text`; nullopt if there is none, or several.
std::optional<std::size_t> FindUuid(const std::vector<Gpu>& devices, std::string_view text) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (!devices[i].uuid.starts_with(text)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

// "1gpu2" is 1, as with strtol.
std::optional<std::size_t> FindIndex(const std::vector<Gpu>& devices, std::string_view text) {
  const std::optional<std::size_t> index = TakeNumber<std::size_t>(&text);
  return index && *index < devices.size() ? index : std::nullopt;
}

// "MIG-<UUID>" or "MIG-GPU-<UUID>/7/0"; the UUID may be abbreviated.
bool IsSlice(std::string_view text) {
  if (!text.starts_with("MIG-")) return false;
  text.remove_prefix(4);
  const bool numbered = text.starts_with("GPU-");
  if (numbered) text.remove_prefix(4);
  const std::string_view uuid = text.substr(0, numbered ? text.find('/') : text.npos);
  const auto fits = [](std::string_view in, std::string_view of) {
    return !in.empty() && in.find_first_not_of(of) == in.npos;
  };
  return fits(uuid, "0123456789abcdefABCDEF-") &&
         (!numbered || fits(text.substr(uuid.size()), "0123456789/"));
}

constexpr std::size_t kShownBytes = 80;

}  // namespace

Gpus ReadGpus(const fs::path& root) {
  Gpus out{Vendor::kNvidia, ReadNvidia(root)};
  if (out.devices.empty()) {
    std::vector<Gpu> amd = ReadAmd(root);
    if (!amd.empty()) out = {Vendor::kAmd, std::move(amd)};
  }
  for (std::size_t i = 0; i < out.devices.size(); ++i) out.devices[i].name = std::to_string(i);
  return out;
}

std::vector<Gpu> Select(const std::vector<Gpu>& devices, std::string_view list) {
  std::vector<Gpu> out;
  std::vector<std::string> taken;
  for (const std::string_view item : Split(list, ',')) {
    const std::string_view entry = Trim(item);
    Gpu gpu;
    std::string identity(entry);
    if (!IsSlice(entry)) {
      const auto found = entry.starts_with("GPU-") ? FindUuid(devices, entry) : FindIndex(devices, entry);
      if (!found) break;
      gpu = devices[*found];
      identity = std::to_string(*found);
    }
    if (std::ranges::find(taken, identity) != taken.end()) return {};
    taken.push_back(std::move(identity));
    gpu.name = entry;
    out.push_back(std::move(gpu));
  }
  return out;
}

std::string ListText(Vendor vendor, const Variable& variable) {
  std::string text;
  for (const char* name : {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
    const bool applies = vendor == Vendor::kAmd || name == std::string_view("CUDA_VISIBLE_DEVICES");
    const std::optional<std::string> list = applies ? variable(name) : std::nullopt;
    if (list)
      text += fmt::format("{}{} is '{}'", text.empty() ? "" : " and ", name,
                          Shortened(Printable(*list), kShownBytes));
  }
  return text;
}

bool MeansNone(std::string_view list) {
  const std::string_view word = Trim(list);
  return word.empty() || word == "-1" || word == "none" || word == "void" || word == "NoDevFiles";
}

const char* ListVariable(Vendor vendor) {
  return vendor == Vendor::kNvidia ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES";
}

std::vector<Gpu> VisibleGpus(const Gpus& gpus, const Variable& variable) {
  std::vector<Gpu> out = gpus.devices;
  if (gpus.vendor == Vendor::kAmd) {
    // ROCr applies its list first; HIP then counts from 0 again.
    if (const auto list = variable("ROCR_VISIBLE_DEVICES")) {
      out = Select(out, *list);
      for (std::size_t i = 0; i < out.size(); ++i) out[i].name = std::to_string(i);
    }
    if (const auto list = variable("HIP_VISIBLE_DEVICES")) return Select(out, *list);
  }
  const auto list = variable("CUDA_VISIBLE_DEVICES");
  return list ? Select(out, *list) : out;
}

Result<std::vector<std::string>> OwnLists(const std::vector<Gpu>& visible, int ranks, const std::string& list,
                                          std::size_t there) {
  const auto count = static_cast<std::size_t>(ranks);
  if (visible.size() < count) {
    std::string names;
    for (const Gpu& gpu : visible) names += (names.empty() ? " (" : ",") + gpu.name;
    if (!names.empty()) names += ")";
    const std::string why =
        list.empty() ? there == 0 ? ", as the host has none" : ""
                     : fmt::format(": {}, and the host has {} GPU{}", list,
                                   there == 0 ? "no" : std::to_string(there), there == 1 ? "" : "s");
    const char* const next = there == 0 ? "leave job.gpu_visibility out, or start the job where GPUs are"
                             : visible.empty()
                                 ? "correct that list, or unset it"
                                 : "start fewer ranks on a host (-n, job.processes_per_host) or let "
                                   "ranks share with \"all\"";
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("{} a GPU each on this host and {} {} visible{}{}; {}",
                             ranks == 1 ? "1 rank wants" : fmt::format("{} ranks want", ranks),
                             visible.size(), visible.size() == 1 ? "is" : "are", names, why, next)};
  }
  std::vector<std::string> out;
  for (std::size_t rank = 0; rank < count; ++rank) {
    std::string own;
    for (std::size_t i = rank * visible.size() / count; i < (rank + 1) * visible.size() / count; ++i)
      own += (own.empty() ? "" : ",") + visible[i].name;
    out.push_back(std::move(own));
  }
  return out;
}

}  // namespace dtrun::binding

#include "device_memory.h"

#include <optional>
#include <utility>

#include "dtrun/plugin/backend.hpp"

namespace dtrun::ucx_plugin {
namespace {

constexpr std::uint64_t Bit(int value) { return std::uint64_t{1} << value; }
constexpr std::uint64_t kCuda = Bit(UCS_MEMORY_TYPE_CUDA) | Bit(UCS_MEMORY_TYPE_CUDA_MANAGED);
constexpr std::uint64_t kRocm = Bit(UCS_MEMORY_TYPE_ROCM) | Bit(UCS_MEMORY_TYPE_ROCM_MANAGED);

}  // namespace

DeviceMemory::DeviceMemory(const Library& library, const Selection& selection) : library_(&library) {
  std::uint64_t known = 0;
  VisitDomains(library, [&](uct_md_h domain) {
    // The function writes as much as the library of this process knows.
    struct {
      uct_md_attr_t attributes;
      char room[4096];
    } answer{};
    if (library.md_query(domain, &answer.attributes) != UCS_OK) return false;
    const std::uint64_t types = answer.attributes.cap.detect_mem_types & (kCuda | kRocm);
    known |= types;
    if (types != 0) domains_.push_back(domain);
    return types != 0;
  });
  if (known == 0) {
    why_ = "because this UCX has no transport for it: it was built without CUDA and ROCm, or finds no device";
    return;
  }
  const Context context(library, selection, std::nullopt);
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  library.Check(library.context_query(context.get(), &attributes), "ask UCX for the memory that it moves");
  types_ = known & attributes.memory_types;
  if (types_ == 0)
    why_ = "because the transports '" + selection.transports + "' leave out UCX's for it, such as cuda_copy";
}

DeviceMemory::~DeviceMemory() {
  for (uct_md_h domain : domains_) library_->md_close(domain);
}

std::uint64_t DeviceMemory::kinds() const {
  std::uint64_t kinds = 0;
  if ((types_ & Bit(UCS_MEMORY_TYPE_CUDA)) != 0) kinds |= sdk::Bits({DTRUN_DEVICE_CUDA});
  if ((types_ & Bit(UCS_MEMORY_TYPE_ROCM)) != 0) kinds |= sdk::Bits({DTRUN_DEVICE_ROCM});
  return kinds;
}

std::string DeviceMemory::Text() const {
  if (types_ == 0) return "staged, " + why_;
  std::string devices;
  for (const auto& [type, name] : {std::pair{UCS_MEMORY_TYPE_CUDA, "cuda"}, {UCS_MEMORY_TYPE_ROCM, "rocm"}}) {
    if ((types_ & Bit(type)) != 0) devices.append(devices.empty() ? "" : ", ").append(name);
  }
  return "direct (UCX with " + devices + "); reductions and alltoall staged";
}

ucs_memory_type_t DeviceMemory::TypeOf(const void* buffer) const {
  if (types_ == 0 || buffer == nullptr) return UCS_MEMORY_TYPE_HOST;
  for (uct_md_h domain : domains_) {
    ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    if (library_->md_detect_memory_type(domain, buffer, 1, &type) == UCS_OK && (types_ & Bit(type)) != 0)
      return type;
  }
  return UCS_MEMORY_TYPE_HOST;
}

}  // namespace dtrun::ucx_plugin

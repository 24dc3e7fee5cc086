#include "context.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "dtrun/plugin/backend.hpp"

namespace dtrun::ucx_plugin {
namespace {

// How often UCX asks whether a silent peer is alive.
constexpr const char* kKeepalive = "2s";
constexpr const char* kRendezvousBytes = "2M";
constexpr const char* kSegmentBytes = "256K";

constexpr std::uint64_t Bit(int value) { return std::uint64_t{1} << value; }
constexpr std::uint64_t kCuda = Bit(UCS_MEMORY_TYPE_CUDA) | Bit(UCS_MEMORY_TYPE_CUDA_MANAGED);
constexpr std::uint64_t kRocm = Bit(UCS_MEMORY_TYPE_ROCM) | Bit(UCS_MEMORY_TYPE_ROCM_MANAGED);

}  // namespace

Context::Context(const Library& library, Selection selection, std::optional<std::int64_t> rails)
    : library_(library), selection_(std::move(selection)) {
  ucp_config_t* raw = nullptr;
  library.Check(library.config_read(nullptr, nullptr, &raw), "read UCX's configuration");
  const std::unique_ptr<ucp_config_t, decltype(library.config_release)> config(raw, library.config_release);
  const auto set = [&](const char* name, const std::string& value) {
    library.Check(library.config_modify(config.get(), name, value.c_str()),
                  std::string("set UCX's ") + name + " to '" + value + "'");
  };
  set("TLS", selection_.transports);
  set("NET_DEVICES", selection_.devices);
  set("KEEPALIVE_INTERVAL", kKeepalive);
  // Without it UCX holds that shared memory cannot notice a dead peer, and takes TCP instead.
  set("MM_ERROR_HANDLING", "y");
  // Over TCP, UCX 1.13 starts a rendezvous far too early (32 KiB took twice as long as sent at once)
  // and cuts messages into pieces of 8 KiB.
  const auto& usable = selection_.usable;
  if (std::none_of(usable.begin(), usable.end(), [](const Resource& one) { return one.rdma(); })) {
    if (getenv("UCX_RNDV_THRESH") == nullptr) set("RNDV_THRESH", kRendezvousBytes);
    // UCX 1.22 refuses these, and does without.
    for (const char* name : {"TX_SEG_SIZE", "RX_SEG_SIZE"})
      static_cast<void>(library.config_modify(config.get(), name, kSegmentBytes));
  }
  if (rails) set("MAX_RNDV_RAILS", std::to_string(*rails));

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;  // each communicator has a worker and a thread
  params.name = "dtrun";
  library.Check(
      library.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.get(), &context_),
      "start UCX with transports '" + selection_.transports + "' over devices '" + selection_.devices + "'");
}

Context::~Context() { library_.cleanup(context_); }

Registrations::~Registrations() {
  for (const auto& [begin, piece] : pieces_) context_.library().mem_unmap(context_.get(), piece.handle);
}

void Registrations::Add(void* memory, std::size_t bytes, ucs_memory_type_t type) {
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = memory;
  params.length = bytes;
  params.memory_type = type;
  Piece piece;
  context_.library().Check(context_.library().mem_map(context_.get(), &params, &piece.handle),
                           "register " + std::to_string(bytes) +
                               " bytes with UCX (a limit on locked memory is raised by 'ulimit -l')");
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  piece.end = begin + bytes;
  const std::lock_guard lock(mutex_);
  pieces_.emplace(begin, piece);
  any_.store(true, std::memory_order_release);
}

void Registrations::Remove(void* memory) {
  Piece piece;
  {
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == pieces_.end()) return;
    piece = found->second;
    pieces_.erase(found);
    any_.store(!pieces_.empty(), std::memory_order_release);
  }
  context_.library().mem_unmap(context_.get(), piece.handle);
}

ucp_mem_h Registrations::Find(const void* data, std::size_t bytes) const {
  if (!any_.load(std::memory_order_acquire)) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  const auto after = pieces_.upper_bound(begin);
  if (after == pieces_.begin()) return nullptr;
  const Piece& piece = std::prev(after)->second;
  return bytes <= piece.end - begin && begin < piece.end ? piece.handle : nullptr;
}

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

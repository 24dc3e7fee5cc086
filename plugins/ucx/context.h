// A UCX context: what was selected of this host, shared by the workers of a backend.
//
// Made by the backend, shared by its communicators, gone with the last of them. Constant once
// made; any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/block_signals.hpp"
#include "library.h"
#include "resources.h"

namespace dtrun::ucx_plugin {

// How often UCX asks whether a silent peer is alive.
inline constexpr const char* kKeepalive = "2s";
inline constexpr const char* kRendezvousBytes = "2M";
inline constexpr const char* kSegmentBytes = "256K";

constexpr std::uint64_t Bit(int value) { return std::uint64_t{1} << value; }
inline constexpr std::uint64_t kCuda = Bit(UCS_MEMORY_TYPE_CUDA) | Bit(UCS_MEMORY_TYPE_CUDA_MANAGED);
inline constexpr std::uint64_t kRocm = Bit(UCS_MEMORY_TYPE_ROCM) | Bit(UCS_MEMORY_TYPE_ROCM_MANAGED);

class Context {
 public:
  // Throws sdk::Failure. `rails`: nullopt leaves it to UCX.
  Context(const Library& library, Selection selection, std::optional<std::int64_t> rails)
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
    const sdk::BlockSignals block;  // UCX starts a thread
    library.Check(library.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.get(), &context_),
                  "start UCX with transports '" + selection_.transports + "' over devices '" +
                      selection_.devices + "'");
  }
  ~Context() { library_.cleanup(context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Library& library() const { return library_; }
  const Selection& selection() const { return selection_; }
  ucp_context_h get() const { return context_; }

 private:
  const Library& library_;
  const Selection selection_;
  ucp_context_h context_ = nullptr;
};

// Memory of the program that is registered with UCX: a communicator's.
//
// Owned by an Engine, gone with it. What is sent from it or received into it goes with its handle, so that
// UCX need not register it again for each message. Any thread.
class Registrations {
 public:
  // `context` outlives it.
  explicit Registrations(const Context& context) : context_(context) {}
  ~Registrations() {
    for (const auto& [begin, piece] : pieces_) context_.library().mem_unmap(context_.get(), piece.handle);
  }
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // Throws sdk::Failure where UCX cannot.
  void Add(void* memory, std::size_t bytes, ucs_memory_type_t type) {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
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

  void Remove(void* memory) {
    std::unique_lock lock(mutex_);
    const auto taken = pieces_.extract(reinterpret_cast<std::uintptr_t>(memory));
    any_.store(!pieces_.empty(), std::memory_order_release);
    lock.unlock();
    if (taken) context_.library().mem_unmap(context_.get(), taken.mapped().handle);
  }

  // Null where not all of it is registered in one piece.
  ucp_mem_h Find(const void* data, std::size_t bytes) const {
    if (!any_.load(std::memory_order_acquire)) return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const std::lock_guard lock(mutex_);
    const auto after = pieces_.upper_bound(begin);
    if (after == pieces_.begin()) return nullptr;
    const Piece& piece = std::prev(after)->second;
    return bytes <= piece.end - begin && begin < piece.end ? piece.handle : nullptr;
  }

 private:
  struct Piece {
    std::uintptr_t end = 0;
    ucp_mem_h handle = nullptr;
  };

  const Context& context_;
  std::atomic<bool> any_{false};  // there may be some
  mutable std::mutex mutex_;      // guards the next
  std::map<std::uintptr_t, Piece> pieces_;
};

// The memory of devices: what UCX moves of it in this process, which device owns a pointer, and what a thread
// needs that drives UCX with it.
//
// One per backend, constant once made; any thread. UCX that was built without CUDA and ROCm, or finds no
// device, moves none. Not yet run on a GPU: tested over fakes (testing/fake_ucx.cc).
class DeviceMemory {
 public:
  // None: the user wants it so.
  DeviceMemory() : why_("as backend.options.device_memory says") {}

  // Asks a context of UCX with `selection`: its transports decide.
  DeviceMemory(const Library& library, const Selection& selection) : library_(&library) {
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
      why_ =
          "because this UCX has no transport for it: it was built without CUDA and ROCm, or finds no device";
      return;
    }
    const Context context(library, selection, std::nullopt);
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    library.Check(library.context_query(context.get(), &attributes), "ask UCX for the memory that it moves");
    types_ = known & attributes.memory_types;
    if (types_ == 0)
      why_ =
          "because the transports '" + selection.transports + "' leave out UCX's for it, such as cuda_copy";
  }

  ~DeviceMemory() {
    for (uct_md_h domain : domains_) library_->md_close(domain);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Bits DTRUN_DEVICE_* of the devices with memory that UCX moves; 0: none.
  std::uint64_t kinds() const {
    std::uint64_t kinds = 0;
    if ((types_ & Bit(UCS_MEMORY_TYPE_CUDA)) != 0) kinds |= sdk::Bits({DTRUN_DEVICE_CUDA});
    if ((types_ & Bit(UCS_MEMORY_TYPE_ROCM)) != 0) kinds |= sdk::Bits({DTRUN_DEVICE_ROCM});
    return kinds;
  }

  // "direct (UCX with cuda)", "staged, because ..."
  std::string Text() const {
    if (types_ == 0) return "staged, " + why_;
    std::string devices;
    for (const auto& [type, name] :
         {std::pair{UCS_MEMORY_TYPE_CUDA, "cuda"}, {UCS_MEMORY_TYPE_ROCM, "rocm"}}) {
      if ((types_ & Bit(type)) != 0) devices.append(devices.empty() ? "" : ", ").append(name);
    }
    return "direct (UCX with " + devices + "); reductions and alltoall staged";
  }

  // HOST when it is of no device of kinds(). Asks the device's library: about 100 ns.
  ucs_memory_type_t TypeOf(const void* buffer) const {
    if (types_ == 0 || buffer == nullptr) return UCS_MEMORY_TYPE_HOST;
    for (uct_md_h domain : domains_) {
      ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
      if (library_->md_detect_memory_type(domain, buffer, 1, &type) == UCS_OK && (types_ & Bit(type)) != 0)
        return type;
    }
    return UCS_MEMORY_TYPE_HOST;
  }

 private:
  const Library* library_ = nullptr;
  std::vector<uct_md_h> domains_;  // that know devices
  std::uint64_t types_ = 0;        // bits UCS_MEMORY_TYPE_*
  std::string why_;                // none, when types_ is 0
};

}  // namespace dtrun::ucx_plugin

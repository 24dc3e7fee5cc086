// A UCX context: what was selected of this host, shared by the workers of a backend.
//
// Made by the backend, shared by its communicators, gone with the last of them. Constant once
// made; any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "library.h"
#include "resources.h"

namespace dtrun::ucx_plugin {

class Context {
 public:
  // Throws sdk::Failure. `rails`: nullopt leaves it to UCX.
  Context(const Library& library, Selection selection, std::optional<std::int64_t> rails);
  ~Context();
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
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // Throws sdk::Failure where UCX cannot.
  void Add(void* memory, std::size_t bytes, ucs_memory_type_t type);
  void Remove(void* memory);
  // Null where not all of it is registered in one piece.
  ucp_mem_h Find(const void* data, std::size_t bytes) const;

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
  DeviceMemory(const Library& library, const Selection& selection);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Bits DTRUN_DEVICE_* of the devices with memory that UCX moves; 0: none.
  std::uint64_t kinds() const;
  // "direct (UCX with cuda)", "staged, because ..."
  std::string Text() const;

  // HOST when it is of no device of kinds(). Asks the device's library: about 100 ns.
  ucs_memory_type_t TypeOf(const void* buffer) const;

 private:
  const Library* library_ = nullptr;
  std::vector<uct_md_h> domains_;  // that know devices
  std::uint64_t types_ = 0;        // bits UCS_MEMORY_TYPE_*
  std::string why_;                // none, when types_ is 0
};

}  // namespace dtrun::ucx_plugin

// Memory of the program that is registered with UCX: a communicator's.
//
// Owned by an Engine, gone with it. What is sent from it or received into it goes with its handle, so that
// UCX need not register it again for each message. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "context.h"

namespace dtrun::ucx_plugin {

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

}  // namespace dtrun::ucx_plugin

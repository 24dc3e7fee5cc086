// A communicator's memory for buffers, from the backend or else aligned host memory; and registration of the
// program's memory.
//
// Owned by dtrun_comm; any thread. What the program has not freed ends with it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "core/comm/comm_devices.h"

namespace dtrun::comm {

class CommMemory {
 public:
  CommMemory(CommState& state, CommDevices& devices) : state_(state), devices_(devices) {}
  ~CommMemory();
  CommMemory(const CommMemory&) = delete;
  CommMemory& operator=(const CommMemory&) = delete;

  Result<void*> Allocate(std::uint64_t bytes);
  Result<void*> AllocateOn(std::uint64_t bytes, std::int32_t kind, std::int32_t index);
  void Free(void* memory);
  // For host memory (`kind` and -1) or a device's.
  Status Register(void* memory, std::uint64_t bytes, std::int32_t kind, std::int32_t index);
  void Deregister(void* memory);

 private:
  // Memory that was handed out, and how to free it.
  struct Block {
    bool of_device = false;
    bool of_backend = false;
    dtrun_mem_params params{};
  };
  // Registered memory of the program. `end` is the address behind it.
  struct Registration {
    std::uintptr_t end = 0;
    const Route* route = nullptr;
    bool ready = false;  // the backend has it
  };
  void* Keep(void* memory, const Block& block);

  CommState& state_;
  CommDevices& devices_;
  std::mutex mutex_;               // guards the next two
  std::map<void*, Block> blocks_;  // handed out and not freed
  std::map<std::uintptr_t, Registration> registered_;
};

}  // namespace dtrun::comm

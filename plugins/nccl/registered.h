// Memory that NCCL moves without copying it first, of one communicator: what the communicator gives out, and
// what of the program's memory is registered with it.
//
// Owned by the communicator; the handle outlives it. Methods throw sdk::Failure. Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device_memory.h"
#include "handle.h"

namespace dtrun::nccl_plugin {

class RegisteredMemory {
 public:
  RegisteredMemory(const NcclApi& nccl, const CudaApi& cuda, Handle& comm, int device);
  ~RegisteredMemory();

  // Zeroed memory of the device: NCCL's; the CUDA runtime's where NCCL has none (before 2.19, or without what
  // it needs of the driver). `warning` gets the reason if it cannot be registered, which costs speed only.
  void* Alloc(const dtrun_mem_params& params, std::string* warning);
  // Nothing on the device uses it any more.
  void Free(void* memory);
  void Register(const dtrun_mem_params& params, void* memory);
  void Deregister(void* memory);

 private:
  class Allocation;
  // Null where the library cannot register memory.
  void* Add(void* memory, std::size_t bytes);
  void Remove(void* registration);

  const NcclApi& nccl_;
  const CudaApi& cuda_;
  Handle& comm_;
  const int device_;
  std::mutex mutex_;                                          // guards the next two
  std::map<void*, std::unique_ptr<Allocation>> allocations_;  // given out and not freed
  std::map<void*, void*> registrations_;                      // of the program's memory
};

}  // namespace dtrun::nccl_plugin

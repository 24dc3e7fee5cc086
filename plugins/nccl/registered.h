// Memory that NCCL moves without copying it first: the program's, or its own, registered with one
// communicator.
//
// Owned by the communicator, whose handle outlives it. One thread at a time.
#pragma once

#include <cstddef>
#include <string>

#include "device_memory.h"
#include "handle.h"

namespace dtrun::nccl_plugin {

// Makes memory of the program known to one communicator. Null where the library has nothing to do. Throws
// sdk::Failure.
void* Register(const NcclApi& nccl, Handle& comm, void* memory, std::size_t bytes);
// Null is allowed.
void Deregister(const NcclApi& nccl, Handle& comm, void* registration);

// Memory of the current device: NCCL's; the runtime's where NCCL has none (before 2.19, or without what it
// needs of the driver).
class Registered {
 public:
  // Throws sdk::Failure where there is no memory. `warning` gets the reason where it cannot be registered,
  // which costs speed only.
  Registered(const NcclApi& nccl, const CudaApi& cuda, Handle& comm, std::size_t bytes, std::string* warning);
  // Nothing on the device uses it any more.
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  void* data() const { return data_; }

 private:
  void Allocate(std::size_t bytes);

  const NcclApi& nccl_;
  const CudaApi& cuda_;
  Handle& comm_;
  bool of_nccl_ = false;
  void* data_ = nullptr;
  void* registration_ = nullptr;
};

}  // namespace dtrun::nccl_plugin

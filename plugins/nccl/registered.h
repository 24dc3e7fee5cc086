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
#include <utility>

#include "device_memory.h"
#include "dtrun/plugin/patience.hpp"
#include "handle.h"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {

// A communicator takes nothing while an operation of another thread is being launched.
inline constexpr auto kLaunched = std::chrono::seconds(1);

// Takes the entry of `key` out of `map`; a default value if there is none.
template <class Map>
typename Map::mapped_type Take(std::mutex& mutex, Map& map, void* key) {
  const std::lock_guard lock(mutex);
  auto node = map.extract(key);
  return node ? std::move(node.mapped()) : typename Map::mapped_type{};
}

class RegisteredMemory {
 public:
  RegisteredMemory(const NcclApi& nccl, const CudaApi& cuda, Handle& comm, int device)
      : nccl_(nccl), cuda_(cuda), comm_(comm), device_(device) {}

  // Zeroed memory of the device: NCCL's; the CUDA runtime's where NCCL has none (before 2.19, or without what
  // it needs of the driver). `warning` gets the reason if it cannot be registered, which costs speed only.
  void* Alloc(const dtrun_mem_params& params, std::string* warning) {
    const OnDevice on(cuda_, device_);
    auto memory = std::make_unique<Allocation>(*this, params.bytes, warning);
    void* const data = memory->data();
    if (reinterpret_cast<std::uintptr_t>(data) % params.alignment != 0) {
      throw sdk::Failure(DTRUN_UNSUPPORTED, "memory of the device is not aligned to " +
                                                std::to_string(params.alignment) + " bytes; ask for less");
    }
    const cuda::BesideCaptures relaxed(cuda_);
    const OwnStream stream(cuda_);  // what waits on another may be an operation
    cuda_.Check(cuda_.memset_async(data, 0, params.bytes, stream.get()), "clear memory");
    cuda_.Check(cuda_.stream_synchronize(stream.get()), "clear memory");
    const std::lock_guard lock(mutex_);
    allocations_.emplace(data, std::move(memory));
    return data;
  }

  // Nothing on the device uses it any more.
  void Free(void* memory) {
    std::unique_ptr<Allocation> last = Take(mutex_, allocations_, memory);
    const OnDevice on(cuda_, device_);
    last.reset();
  }
  void Register(const dtrun_mem_params& params, void* memory) {
    const OnDevice on(cuda_, device_);
    const cuda::BesideCaptures relaxed(cuda_);
    void* const registration = Add(memory, params.bytes);
    const std::lock_guard lock(mutex_);
    registrations_[memory] = registration;
  }
  void Deregister(void* memory) {
    void* const registration = Take(mutex_, registrations_, memory);
    const OnDevice on(cuda_, device_);
    const cuda::BesideCaptures relaxed(cuda_);
    Remove(registration);
  }

 private:
  class Allocation {
   public:
    Allocation(RegisteredMemory& owner, std::size_t bytes, std::string* warning) : owner_(owner) {
      const cuda::BesideCaptures relaxed(owner_.cuda_);
      Allocate(bytes);
      try {
        registration_ = owner_.Add(data_, bytes);
      } catch (const sdk::Failure& failure) {
        *warning = failure.what();
      }
    }
    ~Allocation() {
      const cuda::BesideCaptures relaxed(owner_.cuda_);
      owner_.Remove(registration_);
      of_nccl_ ? static_cast<void>(owner_.nccl_.mem_free(data_))
               : static_cast<void>(owner_.cuda_.Handled(owner_.cuda_.release(data_)));
    }
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;

    void* data() const { return data_; }

   private:
    // NCCL's needs what not every driver and container allows: then the runtime's serves.
    void Allocate(std::size_t bytes) {
      const NcclApi& nccl = owner_.nccl_;
      of_nccl_ = nccl.mem_alloc != nullptr && nccl.mem_free != nullptr &&
                 nccl.mem_alloc(&data_, bytes) == nccl::kSuccess;
      if (of_nccl_) return;
      const CudaApi& cuda = owner_.cuda_;
      const cuda::Error error = cuda.allocate(&data_, bytes);
      if (error == cuda::kOutOfMemory) {
        throw sdk::Failure(DTRUN_OUT_OF_MEMORY, "nccl cannot allocate " + std::to_string(bytes) +
                                                    " bytes of the device: " + cuda.Text(error) +
                                                    "; nvidia-smi shows which processes use its memory")
            .Vendor("cuda", error);
      }
      cuda.Check(error, "allocate " + std::to_string(bytes) + " bytes of the device");
    }

    RegisteredMemory& owner_;
    bool of_nccl_ = false;
    void* data_ = nullptr;
    void* registration_ = nullptr;
  };

  // Null where the library cannot register memory.
  void* Add(void* memory, std::size_t bytes) {
    if (nccl_.comm_register == nullptr || nccl_.comm_deregister == nullptr) return nullptr;
    const sdk::Deadline deadline{kLaunched};
    sdk::Patience patience;
    while (comm_.State() == nccl::kInProgress && !deadline.passed()) patience.Wait(deadline);
    void* registration = nullptr;
    const nccl::Result result = comm_.Use(
        [&](nccl::Comm handle) { return nccl_.comm_register(handle, memory, bytes, &registration); });
    if (result != nccl::kSuccess) throw NcclFailure(nccl_, "register memory", result);
    return registration;
  }

  void Remove(void* registration) {
    if (registration == nullptr) return;
    comm_.Use([&](nccl::Comm handle) { return nccl_.comm_deregister(handle, registration); });
  }

  const NcclApi& nccl_;
  const CudaApi& cuda_;
  Handle& comm_;
  const int device_;
  std::mutex mutex_;                                          // guards the next two
  std::map<void*, std::unique_ptr<Allocation>> allocations_;  // given out and not freed
  std::map<void*, void*> registrations_;                      // of the program's memory
};

}  // namespace dtrun::nccl_plugin

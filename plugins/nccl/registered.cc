#include "registered.h"

#include <utility>

#include "dtrun/plugin/patience.hpp"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {
namespace {

using sdk::Failure;

// A communicator takes nothing while an operation of another thread is being launched.
constexpr auto kLaunched = std::chrono::seconds(1);

// Takes the entry of `key` out of `map`; a default value if there is none.
template <class Map>
typename Map::mapped_type Take(std::mutex& mutex, Map& map, void* key) {
  const std::lock_guard lock(mutex);
  auto node = map.extract(key);
  return node ? std::move(node.mapped()) : typename Map::mapped_type{};
}

}  // namespace

class RegisteredMemory::Allocation {
 public:
  Allocation(RegisteredMemory& owner, std::size_t bytes, std::string* warning) : owner_(owner) {
    const cuda::BesideCaptures relaxed(owner_.cuda_);
    Allocate(bytes);
    try {
      registration_ = owner_.Add(data_, bytes);
    } catch (const Failure& failure) {
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
      throw Failure(DTRUN_OUT_OF_MEMORY, "nccl cannot allocate " + std::to_string(bytes) +
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

RegisteredMemory::RegisteredMemory(const NcclApi& nccl, const CudaApi& cuda, Handle& comm, int device)
    : nccl_(nccl), cuda_(cuda), comm_(comm), device_(device) {}
RegisteredMemory::~RegisteredMemory() = default;

void* RegisteredMemory::Alloc(const dtrun_mem_params& params, std::string* warning) {
  const OnDevice on(cuda_, device_);
  auto memory = std::make_unique<Allocation>(*this, params.bytes, warning);
  void* const data = memory->data();
  if (reinterpret_cast<std::uintptr_t>(data) % params.alignment != 0) {
    throw Failure(DTRUN_UNSUPPORTED, "memory of the device is not aligned to " +
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

void RegisteredMemory::Free(void* memory) {
  std::unique_ptr<Allocation> last = Take(mutex_, allocations_, memory);
  const OnDevice on(cuda_, device_);
  last.reset();
}

void RegisteredMemory::Register(const dtrun_mem_params& params, void* memory) {
  const OnDevice on(cuda_, device_);
  const cuda::BesideCaptures relaxed(cuda_);
  void* const registration = Add(memory, params.bytes);
  const std::lock_guard lock(mutex_);
  registrations_[memory] = registration;
}

void RegisteredMemory::Deregister(void* memory) {
  void* const registration = Take(mutex_, registrations_, memory);
  const OnDevice on(cuda_, device_);
  const cuda::BesideCaptures relaxed(cuda_);
  Remove(registration);
}

void* RegisteredMemory::Add(void* memory, std::size_t bytes) {
  if (nccl_.comm_register == nullptr || nccl_.comm_deregister == nullptr) return nullptr;
  const sdk::Deadline deadline{kLaunched};
  sdk::Patience patience;
  while (comm_.State() == nccl::kInProgress && !deadline.passed()) patience.Wait(deadline);
  void* registration = nullptr;
  const nccl::Result result =
      comm_.Use([&](nccl::Comm handle) { return nccl_.comm_register(handle, memory, bytes, &registration); });
  if (result != nccl::kSuccess) throw NcclFailure(nccl_, "register memory", result);
  return registration;
}

void RegisteredMemory::Remove(void* registration) {
  if (registration == nullptr) return;
  comm_.Use([&](nccl::Comm handle) { return nccl_.comm_deregister(handle, registration); });
}

}  // namespace dtrun::nccl_plugin

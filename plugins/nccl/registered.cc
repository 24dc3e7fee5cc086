#include "registered.h"

#include "dtrun/plugin/patience.hpp"
#include "nccl_failure.h"

namespace dtrun::nccl_plugin {
namespace {

// A communicator takes nothing while an operation of another thread is being launched.
constexpr auto kLaunched = std::chrono::seconds(1);

}  // namespace

void* Register(const NcclApi& nccl, Handle& comm, void* memory, std::size_t bytes) {
  if (nccl.comm_register == nullptr || nccl.comm_deregister == nullptr) return nullptr;
  const sdk::Deadline deadline{kLaunched};
  sdk::Patience patience;
  while (comm.State() == nccl::kInProgress && !deadline.passed()) patience.Wait(deadline);
  void* registration = nullptr;
  const nccl::Result result =
      comm.Use([&](nccl::Comm handle) { return nccl.comm_register(handle, memory, bytes, &registration); });
  if (result != nccl::kSuccess) throw NcclFailure(nccl, "register memory", result);
  return registration;
}

void Deregister(const NcclApi& nccl, Handle& comm, void* registration) {
  if (registration == nullptr) return;
  comm.Use([&](nccl::Comm handle) { return nccl.comm_deregister(handle, registration); });
}

Registered::Registered(const NcclApi& nccl, const CudaApi& cuda, Handle& comm, std::size_t bytes,
                       std::string* warning)
    : nccl_(nccl), cuda_(cuda), comm_(comm) {
  const cuda::BesideCaptures relaxed(cuda_);
  Allocate(bytes);
  try {
    registration_ = Register(nccl_, comm_, data_, bytes);
  } catch (const sdk::Failure& failure) {
    *warning = failure.what();
  }
}

// NCCL's needs what not every driver and container allows: then the runtime's serves.
void Registered::Allocate(std::size_t bytes) {
  of_nccl_ = nccl_.mem_alloc != nullptr && nccl_.mem_free != nullptr &&
             nccl_.mem_alloc(&data_, bytes) == nccl::kSuccess;
  if (of_nccl_) return;
  const cuda::Error error = cuda_.allocate(&data_, bytes);
  if (error == cuda::kOutOfMemory) {
    throw sdk::Failure(DTRUN_OUT_OF_MEMORY, "nccl cannot allocate " + std::to_string(bytes) +
                                                " bytes of the device: " + cuda_.Text(error) +
                                                "; nvidia-smi shows which processes use its memory")
        .Vendor("cuda", error);
  }
  cuda_.Check(error, "allocate " + std::to_string(bytes) + " bytes of the device");
}

Registered::~Registered() {
  const cuda::BesideCaptures relaxed(cuda_);
  Deregister(nccl_, comm_, registration_);
  of_nccl_ ? static_cast<void>(nccl_.mem_free(data_)) : static_cast<void>(cuda_.Handled(cuda_.release(data_)));
}

}  // namespace dtrun::nccl_plugin

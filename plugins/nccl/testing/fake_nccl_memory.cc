// Memory of the fake NCCL: the fake runtime's, counted, and registered with a communicator. Any thread.
#include <mutex>
#include <set>
#include <utility>

#include "fake_control.h"

extern "C" int cudaMalloc(void** out, std::size_t bytes);
extern "C" int cudaFree(void* memory);

namespace nccl = dtrun::nccl_plugin::nccl;

namespace {

std::mutex mutex;
std::set<std::pair<nccl::Comm, void*>> registered;

}  // namespace

// The library's own names and types.
extern "C" {

int ncclMemAlloc(void** out, std::size_t bytes) {
  if (dtrun_fake_nccl()->memory_result != 0) return dtrun_fake_nccl()->memory_result;
  if (cudaMalloc(out, bytes) != 0) return nccl::kUnhandledCudaError;
  ++dtrun_fake_nccl()->blocks;
  return nccl::kSuccess;
}

int ncclMemFree(void* memory) {
  --dtrun_fake_nccl()->blocks;
  return cudaFree(memory) == 0 ? nccl::kSuccess : nccl::kUnhandledCudaError;
}

int ncclCommRegister(nccl::Comm comm, void* buffer, std::size_t, void** out) {
  if (dtrun_fake_nccl()->register_result != 0) return dtrun_fake_nccl()->register_result;
  const std::lock_guard lock(mutex);
  if (registered.emplace(comm, buffer).second) ++dtrun_fake_nccl()->registrations;
  *out = buffer;
  return nccl::kSuccess;
}

int ncclCommDeregister(nccl::Comm comm, void* registration) {
  const std::lock_guard lock(mutex);
  if (registered.erase({comm, registration}) == 0) return nccl::kInvalidUsage;
  --dtrun_fake_nccl()->registrations;
  return nccl::kSuccess;
}

}  // extern "C"

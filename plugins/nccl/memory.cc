// Memory that a communicator gives out, and that of the program which it makes ready.
#include "comm.h"

namespace dtrun::nccl_plugin {

using sdk::Failure;

void* NcclCommunicator::MemAlloc(const dtrun_mem_params& params) {
  failure_.ThrowIfSet();
  const OnDevice on(environment_.cuda, device_);
  std::string warning;
  auto memory =
      std::make_unique<Registered>(environment_.nccl, environment_.cuda, *handle_, params.bytes, &warning);
  if (!warning.empty()) log_.Warn("memory of '" + members_.name() + "' is moved more slowly: " + warning);
  void* const data = memory->data();
  if (reinterpret_cast<std::uintptr_t>(data) % params.alignment != 0) {
    throw Failure(DTRUN_UNSUPPORTED, "memory of the device is not aligned to " +
                                         std::to_string(params.alignment) + " bytes; ask for less");
  }
  const cuda::BesideCaptures relaxed(environment_.cuda);
  const OwnStream stream(environment_.cuda);  // what waits on another may be an operation
  environment_.cuda.Check(environment_.cuda.memset_async(data, 0, params.bytes, stream.get()),
                          "clear memory");
  environment_.cuda.Check(environment_.cuda.stream_synchronize(stream.get()), "clear memory");
  const std::lock_guard lock(memory_mutex_);
  memory_.emplace(data, std::move(memory));
  return data;
}

void NcclCommunicator::MemFree(void* memory) {
  std::unique_ptr<Registered> last;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = memory_.find(memory);
    if (found == memory_.end()) return;
    last = std::move(found->second);
    memory_.erase(found);
  }
  const OnDevice on(environment_.cuda, device_);
  last.reset();
}

void NcclCommunicator::MemRegister(const dtrun_mem_params& params, void* memory) {
  failure_.ThrowIfSet();
  const OnDevice on(environment_.cuda, device_);
  const cuda::BesideCaptures relaxed(environment_.cuda);
  void* const registration = Register(environment_.nccl, *handle_, memory, params.bytes);
  const std::lock_guard lock(memory_mutex_);
  registrations_[memory] = registration;
}

void NcclCommunicator::MemDeregister(void* memory) {
  void* registration = nullptr;
  {
    const std::lock_guard lock(memory_mutex_);
    const auto found = registrations_.find(memory);
    if (found == registrations_.end()) return;
    registration = found->second;
    registrations_.erase(found);
  }
  const OnDevice on(environment_.cuda, device_);
  const cuda::BesideCaptures relaxed(environment_.cuda);
  Deregister(environment_.nccl, *handle_, registration);
}

}  // namespace dtrun::nccl_plugin

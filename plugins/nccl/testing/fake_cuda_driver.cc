// The driver's library, over the fake runtime: a stream that waits for a number in memory.
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "fake_control.h"
#include "fake_devices.h"
#include "fake_stream.h"
#include "plugins/cuda/cuda_abi.h"

namespace cuda = dtrun::cuda;

// The driver's own names and types.
extern "C" {

int cuStreamWaitValue32_v2(void* stream, cuda::DevicePointer address, unsigned value, unsigned flags) {
  const int error = dtrun_fake_cuda()->wait_value_error;
  if (error != cuda::kSuccess) return error;
  if (flags != cuda::kWaitValueGeq) return 1;  // CUDA_ERROR_INVALID_VALUE
  const auto* const counter = reinterpret_cast<const std::uint32_t*>(static_cast<std::uintptr_t>(address));
  const dtrun::nccl_fake::DriverCall call;
  const std::function<void()> wait = [counter, value] {
    while (static_cast<std::int32_t>(__atomic_load_n(counter, __ATOMIC_ACQUIRE) - value) < 0)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  };
  dtrun_fake_run(stream, &wait);
  return cuda::kSuccess;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == cuda::kNotSupported ? "operation not supported" : "unrecognized error code";
  return cuda::kSuccess;
}

}  // extern "C"

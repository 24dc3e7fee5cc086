// What only the driver's library, libcuda, can do: let a stream wait for a number in memory.
//
// Constant once opened; any thread.
#pragma once

#include <string>

#include "cuda_abi.h"

namespace dtrun::cuda {

class CudaDriver {
 public:
  // Looks for `name`, which the runtime has loaded if the host has a driver.
  explicit CudaDriver(const std::string& name = "libcuda.so.1");

  // Later work on `stream` starts when the number at `address` is `value` or up to 2^31 - 1 more. Throws
  // sdk::Failure: DTRUN_UNSUPPORTED, with the reason, where the driver has no such wait.
  void WaitValue(Stream stream, DevicePointer address, unsigned value) const;

 private:
  std::string lack_;  // why there is no such wait; empty when there is
  DriverError (*wait_value_)(Stream, DevicePointer, unsigned value, unsigned flags) = nullptr;
  DriverError (*get_error_string_)(DriverError, const char**) = nullptr;
};

}  // namespace dtrun::cuda

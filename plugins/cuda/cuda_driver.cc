#include "cuda_driver.h"

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::cuda {

CudaDriver::CudaDriver(const std::string& name) {
  try {
    const auto library =
        sdk::SharedLibrary::Open({name}, "the CUDA driver's library", "it comes with the driver");
    // Without the suffix it is the first version, which is off unless a parameter of the kernel module says
    // otherwise.
    const sdk::Symbol wait = library.Find("cuStreamWaitValue32_v2");
    wait_value_ = wait;
    get_error_string_ = library.Find("cuGetErrorString");
    if (!wait.present()) {
      lack_ =
          "'" + library.path() +
          "' has no 'cuStreamWaitValue32_v2', which drivers for CUDA 11.7 and later have; upgrade the driver";
    }
  } catch (const sdk::Failure& failure) {
    lack_ = failure.what();
  }
}

void CudaDriver::WaitValue(Stream stream, DevicePointer address, unsigned value) const {
  if (wait_value_ == nullptr)
    throw sdk::Failure(DTRUN_UNSUPPORTED, "no stream of cuda can wait for a counter: " + lack_);
  const DriverError error = wait_value_(stream, address, value, kWaitValueGeq);
  if (error == kSuccess) return;
  const char* text = nullptr;
  if (get_error_string_ != nullptr) get_error_string_(error, &text);
  throw sdk::Failure(error == kNotSupported ? DTRUN_UNSUPPORTED : DTRUN_VENDOR,
                     "cuda cannot let a stream wait for a counter: '" +
                         std::string(text != nullptr ? text : "unknown error") + "' (error " +
                         std::to_string(error) + ")")
      .Vendor("cuda", error);
}

}  // namespace dtrun::cuda

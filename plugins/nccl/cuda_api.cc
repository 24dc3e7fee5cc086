#include "cuda_api.h"

#include <vector>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

sdk::SharedLibrary FindCuda(const std::string& wanted) {
  if (!wanted.empty())
    return sdk::SharedLibrary::Open({wanted}, "the CUDA runtime", "correct backend.options.cuda_library");
  const std::vector<std::string> names = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  return sdk::SharedLibrary::Open(names, "the CUDA runtime",
                                  "install it (pip's nvidia-cuda-runtime, or the CUDA toolkit) or set "
                                  "backend.options.cuda_library to its file");
}

}  // namespace

CudaApi::CudaApi(const std::string& wanted) : library(FindCuda(wanted)) {}

std::string CudaApi::Text(cuda::Error error) const {
  get_last_error();  // the runtime repeats an error in later calls until somebody has read it
  const char* const text = get_error_string(error);
  return "'" + std::string(text != nullptr ? text : "unknown error") + "'";
}

void CudaApi::Check(cuda::Error error, const std::string& doing) const {
  if (error == cuda::kSuccess) return;
  throw sdk::Failure(DTRUN_VENDOR,
                     "cuda cannot " + doing + ": " + Text(error) + " (error " + std::to_string(error) + ")")
      .Vendor("cuda", error);
}

int CudaApi::DeviceCount() const {
  int count = 0;
  const cuda::Error error = get_device_count(&count);
  if (error == cuda::kSuccess && count > 0) return count;
  throw sdk::Failure(
      DTRUN_FAILED_PRECONDITION,
      "nccl moves the memory of CUDA devices and this process has none" +
          (error == cuda::kSuccess ? std::string() : ": " + Text(error)) +
          "; check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES, or choose backend gloo")
      .Vendor("cuda", error);
}

std::string CudaApi::BusId(int device) const {
  char text[32] = {};
  Check(device_get_pci_bus_id(text, sizeof text, device),
        "tell the address of device " + std::to_string(device));
  return text;
}

OnDevice::OnDevice(const CudaApi& api, int device) : api_(api) {
  int now = -1;
  api.Check(api.get_device(&now), "tell the current device");
  if (now == device) return;
  api.Check(api.set_device(device), "use device " + std::to_string(device));
  before_ = now;
}

OnDevice::~OnDevice() {
  if (before_ >= 0) api_.set_device(before_);
}

}  // namespace dtrun::nccl_plugin

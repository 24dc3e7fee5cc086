#include "cuda_api.h"

#include <vector>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

SharedLibrary FindCuda(const std::string& wanted) {
  if (!wanted.empty())
    return SharedLibrary::Open({wanted}, "the CUDA runtime", "correct backend.options.cuda_library");
  const std::vector<std::string> names = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  return SharedLibrary::Open(names, "the CUDA runtime",
                             "install it (pip's nvidia-cuda-runtime, or the CUDA toolkit) or set "
                             "backend.options.cuda_library to its file");
}

}  // namespace

CudaApi CudaApi::Open(const std::string& wanted) {
  CudaApi api;
  api.library = FindCuda(wanted);
  const SharedLibrary& library = api.library;
  library.Resolve("cudaGetDeviceCount", api.get_device_count);
  library.Resolve("cudaGetDevice", api.get_device);
  library.Resolve("cudaSetDevice", api.set_device);
  library.Resolve("cudaDeviceGetPCIBusId", api.device_get_pci_bus_id);
  library.Resolve("cudaDriverGetVersion", api.driver_get_version);
  library.Resolve("cudaGetErrorString", api.get_error_string);
  library.Resolve("cudaGetLastError", api.get_last_error);
  library.Resolve("cudaPointerGetAttributes", api.pointer_get_attributes);
  library.Resolve("cudaStreamCreateWithFlags", api.stream_create_with_flags);
  library.Resolve("cudaStreamDestroy", api.stream_destroy);
  library.Resolve("cudaStreamWaitEvent", api.stream_wait_event);
  library.Resolve("cudaEventCreateWithFlags", api.event_create_with_flags);
  library.Resolve("cudaEventDestroy", api.event_destroy);
  library.Resolve("cudaEventRecord", api.event_record);
  library.Resolve("cudaEventQuery", api.event_query);
  library.Resolve("cudaMalloc", api.allocate);
  library.Resolve("cudaFree", api.release);
  library.Resolve("cudaMemcpyAsync", api.memcpy_async);
  library.Resolve("cudaMemsetAsync", api.memset_async);
  library.Resolve("cudaStreamSynchronize", api.stream_synchronize);
  library.Resolve("cudaDeviceCanAccessPeer", api.can_access_peer);
  library.Resolve("cudaDeviceEnablePeerAccess", api.enable_peer_access);
  library.Resolve("cudaMemcpyPeerAsync", api.memcpy_peer_async);
  return api;
}

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

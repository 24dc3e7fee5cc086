// A CUDA runtime in this process: found and opened; and small owners of what it makes.
//
// Any libcudart serves: all of one process share the driver's context, so streams and events
// of the program's own runtime (torch carries one) are as good here. Constant once opened; any
// thread.
#pragma once

#include <cstddef>
#include <string>

#include "cuda_abi.h"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::nccl_plugin {

struct CudaApi {
  // `wanted` is the option `cuda_library`: a path, or empty: the libcudart that is already in
  // the process, else the loader's. Throws sdk::Failure.
  explicit CudaApi(const std::string& wanted);

  // Throws sdk::Failure (vendor domain "cuda") unless `error` is success. `doing` is a phrase
  // such as "record an event".
  void Check(cuda::Error error, const std::string& doing) const;
  // "'CUDA driver version is insufficient for CUDA runtime version'".
  std::string Text(cuda::Error error) const;
  // Throws the one sentence about a machine that has no usable device.
  int DeviceCount() const;
  // "0000:19:00.0".
  std::string BusId(int device) const;

  sdk::SharedLibrary library;

  cuda::Error (*get_device_count)(int*) = library["cudaGetDeviceCount"];
  cuda::Error (*get_device)(int*) = library["cudaGetDevice"];
  cuda::Error (*set_device)(int) = library["cudaSetDevice"];
  cuda::Error (*device_get_pci_bus_id)(char*, int, int) = library["cudaDeviceGetPCIBusId"];
  cuda::Error (*driver_get_version)(int*) = library["cudaDriverGetVersion"];
  const char* (*get_error_string)(cuda::Error) = library["cudaGetErrorString"];
  cuda::Error (*get_last_error)() = library["cudaGetLastError"];
  cuda::Error (*pointer_get_attributes)(cuda::PointerAttributes*,
                                        const void*) = library["cudaPointerGetAttributes"];
  cuda::Error (*stream_create_with_flags)(cuda::Stream*, unsigned) = library["cudaStreamCreateWithFlags"];
  cuda::Error (*stream_destroy)(cuda::Stream) = library["cudaStreamDestroy"];
  cuda::Error (*stream_wait_event)(cuda::Stream, cuda::Event, unsigned) = library["cudaStreamWaitEvent"];
  cuda::Error (*event_create_with_flags)(cuda::Event*, unsigned) = library["cudaEventCreateWithFlags"];
  cuda::Error (*event_destroy)(cuda::Event) = library["cudaEventDestroy"];
  cuda::Error (*event_record)(cuda::Event, cuda::Stream) = library["cudaEventRecord"];
  cuda::Error (*event_query)(cuda::Event) = library["cudaEventQuery"];
  cuda::Error (*allocate)(void**, std::size_t) = library["cudaMalloc"];
  cuda::Error (*release)(void*) = library["cudaFree"];
  cuda::Error (*memcpy_async)(void*, const void*, std::size_t, int,
                              cuda::Stream) = library["cudaMemcpyAsync"];
  cuda::Error (*memset_async)(void*, int, std::size_t, cuda::Stream) = library["cudaMemsetAsync"];
  cuda::Error (*stream_synchronize)(cuda::Stream) = library["cudaStreamSynchronize"];
  cuda::Error (*can_access_peer)(int*, int device, int peer) = library["cudaDeviceCanAccessPeer"];
  cuda::Error (*enable_peer_access)(int peer, unsigned) = library["cudaDeviceEnablePeerAccess"];
  cuda::Error (*memcpy_peer_async)(void*, int to, const void*, int from, std::size_t,
                                   cuda::Stream) = library["cudaMemcpyPeerAsync"];
};

// Makes `device` the calling thread's device for as long as it lives.
class OnDevice {
 public:
  OnDevice(const CudaApi& api, int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const CudaApi& api_;
  int before_ = -1;  // -1: it was the right one
};

}  // namespace dtrun::nccl_plugin

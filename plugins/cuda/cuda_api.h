// CUDA in this process: its runtime and driver, found and opened; why there is none; and the scope in which a
// thread uses a device.
//
// Any libcudart serves: all of one process share the driver's context, so streams and events
// of the program's own runtime (torch carries one) are as good here. Constant once opened; any
// thread.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cuda_abi.h"
#include "dtrun/plugin/shared_library.hpp"

namespace dtrun::cuda {

struct CudaApi {
  // `wanted`: a path, or empty: the libcudart that is already in the process, else the loader's, else pip's.
  // `option` is what a user sets to give the path, for messages; empty when there is none. Throws
  // sdk::Failure.
  explicit CudaApi(const std::string& wanted, const std::string& option);

  // Throws sdk::Failure (vendor domain "cuda") unless `error` is success. `doing` is a phrase
  // such as "record an event".
  void Check(Error error, const std::string& doing) const;
  // `error`, which the caller handles: the thread's last error is read, else the program's next look at it
  // (torch looks after each kernel) would take it for its own.
  Error Handled(Error error) const;
  // Whether the device has reached `event`. `doing` as in Check.
  bool Reached(Event event, const std::string& doing) const;
  // "'CUDA driver version is insufficient for CUDA runtime version'".
  std::string Text(Error error) const;
  // How many devices this process may use. Where there is none it throws one sentence: `none` ("this process
  // has no CUDA device"), the reason, `advice`.
  int DeviceCount(const std::string& none, const std::string& advice) const;
  // "0000:19:00.0".
  std::string BusId(int device) const;
  // The newest CUDA that the driver serves: 13000; 0 without a driver.
  int DriverVersion() const;

  sdk::SharedLibrary library;

  Error (*get_device_count)(int*) = library["cudaGetDeviceCount"];
  Error (*get_device)(int*) = library["cudaGetDevice"];
  Error (*set_device)(int) = library["cudaSetDevice"];
  Error (*device_get_pci_bus_id)(char*, int, int) = library["cudaDeviceGetPCIBusId"];
  // Before CUDA 13 the name without a suffix fills the shorter struct of CUDA 11.
  Error (*get_device_properties)(DeviceProperties*, int) = library["cudaGetDeviceProperties"];
  Error (*driver_get_version)(int*) = library["cudaDriverGetVersion"];
  Error (*runtime_get_version)(int*) = library["cudaRuntimeGetVersion"];
  const char* (*get_error_string)(Error) = library["cudaGetErrorString"];
  Error (*get_last_error)() = library["cudaGetLastError"];
  Error (*pointer_get_attributes)(PointerAttributes*, const void*) = library["cudaPointerGetAttributes"];
  Error (*stream_create_with_flags)(Stream*, unsigned) = library["cudaStreamCreateWithFlags"];
  Error (*stream_create_with_priority)(Stream*, unsigned, int) = library["cudaStreamCreateWithPriority"];
  Error (*stream_priority_range)(int* least, int* greatest) = library["cudaDeviceGetStreamPriorityRange"];
  Error (*stream_is_capturing)(Stream, int*) = library["cudaStreamIsCapturing"];
  Error (*exchange_capture_mode)(int*) = library["cudaThreadExchangeStreamCaptureMode"];
  Error (*stream_destroy)(Stream) = library["cudaStreamDestroy"];
  Error (*stream_wait_event)(Stream, Event, unsigned) = library["cudaStreamWaitEvent"];
  Error (*event_create_with_flags)(Event*, unsigned) = library["cudaEventCreateWithFlags"];
  Error (*event_destroy)(Event) = library["cudaEventDestroy"];
  Error (*event_record)(Event, Stream) = library["cudaEventRecord"];
  Error (*event_query)(Event) = library["cudaEventQuery"];
  Error (*allocate)(void**, std::size_t) = library["cudaMalloc"];
  Error (*release)(void*) = library["cudaFree"];
  Error (*host_allocate)(void**, std::size_t, unsigned) = library["cudaHostAlloc"];
  Error (*host_release)(void*) = library["cudaFreeHost"];
  Error (*host_get_device_pointer)(void**, void*, unsigned) = library["cudaHostGetDevicePointer"];
  Error (*memcpy_async)(void*, const void*, std::size_t, int, Stream) = library["cudaMemcpyAsync"];
  Error (*memset_async)(void*, int, std::size_t, Stream) = library["cudaMemsetAsync"];
  Error (*stream_synchronize)(Stream) = library["cudaStreamSynchronize"];
  Error (*can_access_peer)(int*, int device, int peer) = library["cudaDeviceCanAccessPeer"];
  Error (*enable_peer_access)(int peer, unsigned) = library["cudaDeviceEnablePeerAccess"];
  Error (*memcpy_peer_async)(void*, int to, const void*, int from, std::size_t,
                             Stream) = library["cudaMemcpyPeerAsync"];
};

// "13.0" of 13000.
std::string CudaVersionText(int version);

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

// While it lives, what the calling thread asks CUDA cannot invalidate a stream that another thread captures
// into a graph. A thread that looks after operations does not know of captures, and CUDA forbids it much by
// default.
class BesideCaptures {
 public:
  explicit BesideCaptures(const CudaApi& api) : api_(api) { api_.exchange_capture_mode(&mode_); }
  ~BesideCaptures() { api_.exchange_capture_mode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  const CudaApi& api_;
  int mode_ = kCaptureRelaxed;
};

// What only the driver's library, libcuda, can do: let a stream wait for a number in memory. Constant once
// opened; any thread.
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

// A file of NVIDIA's driver that this process may not use, which its libraries do not tell.
struct DeniedFile {
  std::string what;    // "may not open '/dev/nvidiactl': Permission denied"
  std::string advice;  // what to do about it
};

// The first file of `folder` that a GPU needs and that cannot be opened; none when each can, or there is
// none.
std::optional<DeniedFile> DeniedDeviceFile(const std::filesystem::path& folder);

// The files called one of `names`, in that order, that the wheels of NVIDIA have put into the packages of the
// `python3` that is first on `path` (PATH): of a virtual environment, its own.
std::vector<std::string> PythonLibraries(const std::vector<std::string>& names, const std::string& path);

// `names` for the loader, and then those files of this process's PATH.
std::vector<std::string> WithPythonLibraries(std::vector<std::string> names);

}  // namespace dtrun::cuda

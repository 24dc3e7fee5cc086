// The part of CUDA's C interfaces that plugins here call, declared here so that they build where no CUDA
// is installed.
//
// Names, values and layouts are those of cuda_runtime_api.h since CUDA 11, and of cuda.h; abi_test.cc
// compares them with real headers where there are some. Constants; any thread.
#pragma once

namespace dtrun::cuda {

using Error = int;     // cudaError_t
using Stream = void*;  // cudaStream_t
using Event = void*;   // cudaEvent_t

inline constexpr Error kSuccess = 0;
inline constexpr Error kOutOfMemory = 2;  // cudaErrorMemoryAllocation
inline constexpr Error kUnloading = 4;    // cudaErrorCudartUnloading
inline constexpr Error kInsufficientDriver = 35;
inline constexpr Error kNoDevice = 100;
inline constexpr Error kPeerAccessUnsupported = 217;
inline constexpr Error kInvalidHandle = 400;  // cudaErrorInvalidResourceHandle
inline constexpr Error kNotReady = 600;
inline constexpr Error kPeerAccessAlreadyEnabled = 704;
inline constexpr Error kNotSupported = 801;
inline constexpr Error kCaptureUnsupported = 900;  // cudaErrorStreamCaptureUnsupported
inline constexpr Error kCaptureInvalid = 901;      // cudaErrorStreamCaptureInvalidated
inline constexpr Error kCaptureIsolation = 905;    // cudaErrorStreamCaptureIsolation
inline constexpr Error kCapturedEvent = 907;       // cudaErrorCapturedEvent

inline constexpr unsigned kStreamNonBlocking = 1;   // cudaStreamNonBlocking
inline constexpr unsigned kEventDisableTiming = 2;  // cudaEventDisableTiming
inline constexpr int kMemoryUnregistered = 0;       // cudaMemoryType
inline constexpr int kMemoryHost = 1;
inline constexpr int kMemoryDevice = 2;
inline constexpr int kMemoryManaged = 3;
inline constexpr int kCopyHostToDevice = 1;  // cudaMemcpyKind
inline constexpr int kCopyDeviceToHost = 2;
inline constexpr int kCopyDeviceToDevice = 3;
inline constexpr int kCopyDefault = 4;        // what the pointers say
inline constexpr unsigned kHostPortable = 1;  // cudaHostAllocPortable
inline constexpr unsigned kHostMapped = 2;    // cudaHostAllocMapped
inline constexpr int kCaptureNone = 0;        // cudaStreamCaptureStatus
inline constexpr int kCaptureInvalidated = 2;
inline constexpr int kCaptureGlobal = 0;  // cudaStreamCaptureMode
inline constexpr int kCaptureThreadLocal = 1;
inline constexpr int kCaptureRelaxed = 2;

// cudaPointerAttributes. CUDA 13 appended eight longs; older runtimes write less.
struct PointerAttributes {
  int type = kMemoryUnregistered;
  int device = -1;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  long reserved[8] = {};
};

// cudaDeviceProp begins with its name and has had 1,032 bytes at most.
struct DeviceProperties {
  char name[256] = {};
  alignas(16) char rest[8192] = {};
};

// Of the driver, cuda.h.
using DriverError = int;                      // CUresult
using DevicePointer = unsigned long long;     // CUdeviceptr
inline constexpr unsigned kWaitValueGeq = 0;  // CU_STREAM_WAIT_VALUE_GEQ: int32_t(*address - value) >= 0

}  // namespace dtrun::cuda

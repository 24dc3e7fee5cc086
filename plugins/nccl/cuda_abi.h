// The part of the CUDA runtime's C interface that this plugin calls, declared here so that it
// builds where no CUDA is installed.
//
// Names, values and layouts are those of cuda_runtime_api.h since CUDA 11; nccl_abi_test.cc
// compares them with a real header where there is one. Any thread.
#pragma once

namespace dtrun::nccl_plugin::cuda {

using Error = int;     // cudaError_t
using Stream = void*;  // cudaStream_t
using Event = void*;   // cudaEvent_t

inline constexpr Error kSuccess = 0;
inline constexpr Error kInsufficientDriver = 35;
inline constexpr Error kNoDevice = 100;
inline constexpr Error kPeerAccessUnsupported = 217;
inline constexpr Error kNotReady = 600;
inline constexpr Error kPeerAccessAlreadyEnabled = 704;

inline constexpr unsigned kStreamNonBlocking = 1;   // cudaStreamNonBlocking
inline constexpr unsigned kEventDisableTiming = 2;  // cudaEventDisableTiming
inline constexpr int kMemoryUnregistered = 0;       // cudaMemoryType
inline constexpr int kMemoryHost = 1;
inline constexpr int kMemoryDevice = 2;
inline constexpr int kMemoryManaged = 3;
inline constexpr int kCopyHostToDevice = 1;  // cudaMemcpyKind
inline constexpr int kCopyDeviceToHost = 2;
inline constexpr int kCopyDeviceToDevice = 3;

// cudaPointerAttributes. CUDA 13 appended eight longs; older runtimes write less.
struct PointerAttributes {
  int type = kMemoryUnregistered;
  int device = -1;
  void* device_pointer = nullptr;
  void* host_pointer = nullptr;
  long reserved[8] = {};
};

}  // namespace dtrun::nccl_plugin::cuda

// The part of NCCL's C interface that this plugin calls, declared here so that it builds
// where no NCCL is installed.
//
// Names, values and layouts are those of nccl.h, which has kept them since the versions named
// below; testing/abi_test.cc compares them with a real header where there is one. Any thread.
#pragma once

#include <climits>
#include <cstddef>

namespace dtrun::nccl_plugin::nccl {

struct CommObject;
using Comm = CommObject*;  // ncclComm_t
using CudaStream = void*;  // cudaStream_t
using Result = int;        // ncclResult_t
using DataType = int;      // ncclDataType_t
using Reduction = int;     // ncclRedOp_t

// ncclGetVersion's number since 2.9.
constexpr int Version(int major, int minor, int patch) { return major * 10000 + minor * 100 + patch; }

inline constexpr Result kSuccess = 0;
inline constexpr Result kUnhandledCudaError = 1;
inline constexpr Result kSystemError = 2;
inline constexpr Result kInternalError = 3;
inline constexpr Result kInvalidArgument = 4;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kRemoteError = 6;  // 2.13
inline constexpr Result kInProgress = 7;   // 2.14

inline constexpr DataType kInt8 = 0;
inline constexpr DataType kUint8 = 1;
inline constexpr DataType kInt32 = 2;
inline constexpr DataType kUint32 = 3;
inline constexpr DataType kInt64 = 4;
inline constexpr DataType kUint64 = 5;
inline constexpr DataType kFloat16 = 6;
inline constexpr DataType kFloat32 = 7;
inline constexpr DataType kFloat64 = 8;
inline constexpr DataType kBfloat16 = 9;  // 2.10

inline constexpr Reduction kSum = 0;
inline constexpr Reduction kProd = 1;
inline constexpr Reduction kMax = 2;
inline constexpr Reduction kMin = 3;
inline constexpr Reduction kAvg = 4;  // 2.10

inline constexpr int kScalarHostImmediate = 1;  // ncclScalarResidence_t, 2.11

inline constexpr int kUndefined = INT_MIN;  // NCCL_CONFIG_UNDEF_INT

struct UniqueId {  // ncclUniqueId
  char internal[128];
};

// ncclConfig_t, as far as 2.30 has it. A library reads the first `size` bytes, no more than it knows, ignores
// what `version` did not have, and fills in the rest: so programs built against an older header go on
// working. As it is made here it is that of 2.18.
struct Config {
  std::size_t size = kConfigBytes;
  unsigned int magic = 0xcafebeef;
  unsigned int version = Version(2, 18, 0);
  int blocking = kUndefined;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
  int traffic_class = kUndefined;   // 2.26
  const char* comm_name = nullptr;  // 2.27, with the next four
  int collnet_enable = kUndefined;
  int cta_policy = kUndefined;
  int shrink_share = kUndefined;
  int nvls_ctas = kUndefined;
  int channels_per_net_peer = kUndefined;  // 2.28, with the next
  int nvlink_centric_sched = kUndefined;
  int graph_usage_mode = kUndefined;  // 2.29, with the next
  int num_rma_ctx = kUndefined;
  int max_p2p_peers = kUndefined;  // 2.30

  static constexpr std::size_t kConfigBytes = 48;  // in 2.18, with its padding
};

}  // namespace dtrun::nccl_plugin::nccl

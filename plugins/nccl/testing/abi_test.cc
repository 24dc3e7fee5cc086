// Compares what nccl_abi.h and cuda_abi.h declare with the vendor's headers. Compiling it is the
// test.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>

#include "plugins/cuda/cuda_abi.h"
#include "plugins/nccl/nccl_abi.h"

namespace dtrun::nccl_plugin {

static_assert(nccl::kSuccess == ncclSuccess && nccl::kUnhandledCudaError == ncclUnhandledCudaError);
static_assert(nccl::kSystemError == ncclSystemError && nccl::kInternalError == ncclInternalError);
static_assert(nccl::kInvalidArgument == ncclInvalidArgument && nccl::kInvalidUsage == ncclInvalidUsage);
static_assert(nccl::kRemoteError == ncclRemoteError && nccl::kInProgress == ncclInProgress);
static_assert(nccl::kInt8 == ncclInt8 && nccl::kUint8 == ncclUint8 && nccl::kInt32 == ncclInt32);
static_assert(nccl::kUint32 == ncclUint32 && nccl::kInt64 == ncclInt64 && nccl::kUint64 == ncclUint64);
static_assert(nccl::kFloat16 == ncclFloat16 && nccl::kFloat32 == ncclFloat32 &&
              nccl::kFloat64 == ncclFloat64);
static_assert(nccl::kBfloat16 == ncclBfloat16);
static_assert(nccl::kSum == ncclSum && nccl::kProd == ncclProd && nccl::kMax == ncclMax);
static_assert(nccl::kMin == ncclMin && nccl::kAvg == ncclAvg);
static_assert(nccl::kScalarHostImmediate == ncclScalarHostImmediate);
static_assert(nccl::kUndefined == NCCL_CONFIG_UNDEF_INT);
static_assert(nccl::Version(2, 28, 9) == NCCL_VERSION(2, 28, 9));
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId) &&
              alignof(nccl::UniqueId) == alignof(ncclUniqueId));
static_assert(sizeof(ncclResult_t) == sizeof(nccl::Result) && sizeof(ncclRedOp_t) == sizeof(nccl::Reduction));

// A newer structure begins with ours; an older one is as far as it goes.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
static_assert(sizeof(nccl::Config) <= sizeof(ncclConfig_t));
#else
static_assert(sizeof(nccl::Config) > sizeof(ncclConfig_t));
#endif
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(nccl::Config, max_ctas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(nccl::Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(nccl::Config, split_share) == offsetof(ncclConfig_t, splitShare));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 26, 0)
static_assert(offsetof(nccl::Config, traffic_class) == offsetof(ncclConfig_t, trafficClass));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
static_assert(offsetof(nccl::Config, comm_name) == offsetof(ncclConfig_t, commName));
static_assert(offsetof(nccl::Config, collnet_enable) == offsetof(ncclConfig_t, collnetEnable));
static_assert(offsetof(nccl::Config, cta_policy) == offsetof(ncclConfig_t, CTAPolicy));
static_assert(offsetof(nccl::Config, nvls_ctas) == offsetof(ncclConfig_t, nvlsCTAs));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(offsetof(nccl::Config, channels_per_net_peer) == offsetof(ncclConfig_t, nChannelsPerNetPeer));
static_assert(offsetof(nccl::Config, nvlink_centric_sched) == offsetof(ncclConfig_t, nvlinkCentricSched));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 29, 0)
static_assert(offsetof(nccl::Config, graph_usage_mode) == offsetof(ncclConfig_t, graphUsageMode));
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
static_assert(offsetof(nccl::Config, max_p2p_peers) == offsetof(ncclConfig_t, maxP2pPeers));
#endif
#ifdef NCCL_CTA_POLICY_ZERO
static_assert(NCCL_CTA_POLICY_EFFICIENCY == 1 && NCCL_CTA_POLICY_ZERO == 2);
#endif

static_assert(cuda::kSuccess == cudaSuccess && cuda::kInsufficientDriver == cudaErrorInsufficientDriver);
static_assert(cuda::kNoDevice == cudaErrorNoDevice && cuda::kNotReady == cudaErrorNotReady);
static_assert(cuda::kPeerAccessUnsupported == cudaErrorPeerAccessUnsupported);
static_assert(cuda::kStreamNonBlocking == cudaStreamNonBlocking);
static_assert(cuda::kEventDisableTiming == cudaEventDisableTiming);
static_assert(cuda::kMemoryUnregistered == cudaMemoryTypeUnregistered &&
              cuda::kMemoryHost == cudaMemoryTypeHost);
static_assert(cuda::kMemoryDevice == cudaMemoryTypeDevice && cuda::kMemoryManaged == cudaMemoryTypeManaged);
static_assert(cuda::kOutOfMemory == cudaErrorMemoryAllocation &&
              cuda::kUnloading == cudaErrorCudartUnloading);
static_assert(cuda::kInvalidHandle == cudaErrorInvalidResourceHandle);
static_assert(cuda::kNotSupported == cudaErrorNotSupported &&
              cuda::kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(cuda::kCopyDeviceToDevice == cudaMemcpyDeviceToDevice &&
              cuda::kCopyDefault == cudaMemcpyDefault);
static_assert(cuda::kHostPortable == cudaHostAllocPortable && cuda::kHostMapped == cudaHostAllocMapped);
static_assert(cuda::kCaptureNone == cudaStreamCaptureStatusNone &&
              cuda::kCaptureInvalidated == cudaStreamCaptureStatusInvalidated);
static_assert(cuda::kCaptureUnsupported == cudaErrorStreamCaptureUnsupported &&
              cuda::kCaptureInvalid == cudaErrorStreamCaptureInvalidated);
static_assert(cuda::kCaptureIsolation == cudaErrorStreamCaptureIsolation &&
              cuda::kCapturedEvent == cudaErrorCapturedEvent);
static_assert(cuda::kCaptureGlobal == cudaStreamCaptureModeGlobal &&
              cuda::kCaptureThreadLocal == cudaStreamCaptureModeThreadLocal &&
              cuda::kCaptureRelaxed == cudaStreamCaptureModeRelaxed);
static_assert(cuda::kWaitValueGeq == CU_STREAM_WAIT_VALUE_GEQ &&
              sizeof(cuda::DevicePointer) == sizeof(CUdeviceptr));
static_assert(offsetof(cudaDeviceProp, name) == 0 &&
              sizeof(cuda::DeviceProperties) >= sizeof(cudaDeviceProp));
static_assert(sizeof cudaDeviceProp{}.name == sizeof cuda::DeviceProperties{}.name);
static_assert(sizeof(cuda::PointerAttributes) >= sizeof(cudaPointerAttributes));
static_assert(offsetof(cuda::PointerAttributes, type) == offsetof(cudaPointerAttributes, type));
static_assert(offsetof(cuda::PointerAttributes, device) == offsetof(cudaPointerAttributes, device));

}  // namespace dtrun::nccl_plugin

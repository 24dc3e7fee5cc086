// The entry point of the device plugin `cuda`.
#include "cuda_device.h"

namespace dtrun::cuda {
namespace {}  // namespace
}  // namespace dtrun::cuda

DTRUN_SDK_PLUGIN(dtrun::cuda::CudaDevice, .name = "cuda", .version = DTRUN_VERSION, .vendor = "dtrun",
                 .license = "Apache-2.0", .summary = "memory, streams and events of NVIDIA GPUs")

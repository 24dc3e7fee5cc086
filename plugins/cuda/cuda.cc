// The entry point of the device plugin `cuda`.
#include "cuda_device.h"

namespace dtrun::cuda {
namespace {

constexpr sdk::PluginInfo kInfo = {
    .name = "cuda",
    .version = DTRUN_VERSION,
    .vendor = "dtrun",
    .license = "Apache-2.0",
    .summary = "memory, streams and events of NVIDIA GPUs",
};
constexpr dtrun_plugin kPlugin = sdk::MakePlugin<CudaDevice>(kInfo);

}  // namespace
}  // namespace dtrun::cuda

dtrun_status dtrun_plugin_entry_v0(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  return dtrun::sdk::Enter(dtrun::cuda::kPlugin, host, out, err);
}

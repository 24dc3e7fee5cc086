#include "nccl_failure.h"

namespace dtrun::nccl_plugin {
namespace {

struct Known {
  std::string_view text;  // a piece of NCCL's warning
  std::string_view advice;
};

// Warnings of NCCL 2.18 to 2.28 (bootstrap.cc, socket.cc, init.cc, transport/*.cc), and texts of
// the CUDA runtime that it passes on. The first match counts.
constexpr Known kKnown[] = {
    {"no socket interface found",
     "no network interface is left: correct backend.options.interface or NCCL_SOCKET_IFNAME"},
    {"no usable listening interface", "NCCL_COMM_ID names an address of another network; unset it"},
    {"driver version is insufficient", "the GPU driver is missing or too old; check it with nvidia-smi"},
    {"no CUDA-capable device", "this process sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {"Duplicate GPU detected",
     "two ranks of one host use the same GPU; give each its own, as job.processes_per_host = \"gpu\" does"},
    {"peer access is not supported",
     "these GPUs cannot read each other's memory; set backend.options.p2p = \"off\""},
    {"P2P is disabled between", "the driver forbids peer access; set backend.options.p2p = \"off\""},
    {"No space left on device",
     "/dev/shm is full; give the container a larger one or set backend.options.shm = \"off\""},
    {"Error while creating shared memory",
     "/dev/shm is too small; give the container a larger one or set backend.options.shm = \"off\""},
    {"Error: failed to extend /dev/shm",
     "/dev/shm is too small; give the container a larger one or set backend.options.shm = \"off\""},
    {"No transport found", "p2p, shm and sockets are all off or unusable; set none of them to \"off\""},
    {"Connection refused", "a firewall or a wrong interface; set backend.options.interface"},
    {"No route to host", "the interface leads nowhere; set backend.options.interface"},
    {"Connection closed by remote peer", "another rank died or gave up; look at the first error of the job"},
    {"Mismatched NCCL version", "all ranks need the same NCCL; see the run header of each host"},
    {"out of memory", "the GPU's memory is full; set backend.options.max_ctas or use smaller buffers"},
};

}  // namespace

std::string_view AdviceFor(std::string_view last_error) {
  for (const Known& known : kKnown) {
    if (last_error.find(known.text) != std::string_view::npos) return known.advice;
  }
  return {};
}

sdk::Failure NcclFailure(const std::string& doing, nccl::Result result, std::string_view error_string,
                         std::string_view last_error) {
  // NCCL's own advice to set NCCL_DEBUG is in the way of ours.
  if (const auto end = error_string.find(" (run with NCCL_DEBUG"); end != std::string_view::npos) {
    error_string = error_string.substr(0, end);
  }
  while (!last_error.empty() && last_error.back() == '\n') last_error.remove_suffix(1);
  std::string text = "nccl cannot " + doing + ": '" + std::string(error_string) + "'";
  if (!last_error.empty()) text += ", '" + std::string(last_error) + "'";
  const std::string_view advice = AdviceFor(last_error);
  text += "; ";
  text += advice.empty() ? "NCCL_DEBUG=WARN in job.env shows all that NCCL says" : advice;
  return sdk::Failure(result == nccl::kRemoteError ? DTRUN_REMOTE_FAILURE : DTRUN_VENDOR, text)
      .Vendor("nccl", result);
}

sdk::Failure NcclFailure(const NcclApi& api, const std::string& doing, nccl::Result result) {
  const char* const name = api.get_error_string(result);
  const char* const last = api.get_last_error(nullptr);
  return NcclFailure(doing, result, name != nullptr ? name : "unknown", last != nullptr ? last : "");
}

}  // namespace dtrun::nccl_plugin

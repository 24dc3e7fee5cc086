#include "nccl_failure.h"

namespace dtrun::nccl_plugin {
sdk::Failure NcclFailure(const std::string& doing, nccl::Result result, std::string_view error_string,
                         std::string_view last_error) {
  // NCCL's own advice to set NCCL_DEBUG is in the way of ours.
  if (const auto end = error_string.find(" (run with NCCL_DEBUG"); end != std::string_view::npos) {
    error_string = error_string.substr(0, end);
  }
  while (!last_error.empty() && last_error.back() == '\n') last_error.remove_suffix(1);
  std::string text = "nccl cannot " + doing + ": '" + std::string(error_string) + "'";
  if (last_error.empty()) {
    text += "; NCCL_DEBUG=WARN in job.env shows all that NCCL says";
  } else {
    text += ", '" + std::string(last_error) + "'; `dtrun explain` tells what that means";
  }
  return sdk::Failure(result == nccl::kRemoteError ? DTRUN_REMOTE_FAILURE : DTRUN_VENDOR, text)
      .Vendor("nccl", result);
}

sdk::Failure NcclFailure(const NcclApi& api, const std::string& doing, nccl::Result result) {
  const char* const name = api.get_error_string(result);
  const char* const last = api.get_last_error(nullptr);
  return NcclFailure(doing, result, name != nullptr ? name : "unknown", last != nullptr ? last : "");
}

}  // namespace dtrun::nccl_plugin

#include "nccl_failure.h"

#include <iterator>
#include <utility>

#include "dtrun/known/cuda.hpp"
#include "dtrun/known/nccl.hpp"

namespace dtrun::nccl_plugin {
namespace {

// Null when the text is none of the table.
const known::KnownFailure* Search(const known::KnownFailure* begin, const known::KnownFailure* end,
                                  std::string_view text, known::Captures* captures) {
  for (const known::KnownFailure* one = begin; one != end; ++one) {
    auto found = known::Find(*one, text);
    if (!found) continue;
    *captures = std::move(found->second);
    return one;
  }
  return nullptr;
}

}  // namespace

std::string MeaningOf(std::string_view last_error) {
  known::Captures captures;
  // CUDA's cause stands inside the warning of NCCL that reports it.
  const known::KnownFailure* found =
      Search(std::begin(known::kCuda), std::end(known::kCuda), last_error, &captures);
  if (found == nullptr)
    found = Search(std::begin(known::kNccl), std::end(known::kNccl), last_error, &captures);
  if (found == nullptr) return {};
  return known::Fill(found->what, captures) + "; " + known::Fill(found->fix, captures);
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
  const std::string meaning = MeaningOf(last_error);
  text += meaning.empty() ? "; NCCL_DEBUG=WARN in job.env shows all that NCCL says" : ": " + meaning;
  return sdk::Failure(result == nccl::kRemoteError ? DTRUN_REMOTE_FAILURE : DTRUN_VENDOR, text)
      .Vendor("nccl", result);
}

sdk::Failure NcclFailure(const NcclApi& api, const std::string& doing, nccl::Result result) {
  const char* const name = api.get_error_string(result);
  const char* const last = api.get_last_error(nullptr);
  return NcclFailure(doing, result, name != nullptr ? name : "unknown", last != nullptr ? last : "");
}

}  // namespace dtrun::nccl_plugin

#include "nccl_api.h"

#include "../cuda/cuda_api.h"
#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

constexpr char kCorrect[] = "correct backend.nccl.library";

sdk::SharedLibrary FindNccl(const std::string& wanted) {
  if (!wanted.empty()) return sdk::SharedLibrary::Open({wanted}, "NCCL", kCorrect);
  // Torch brings an NCCL of its own. Two in one process would fight for the device's memory, and
  // an operation of the one could wait for a kernel of the other.
  if (auto loaded = sdk::SharedLibrary::FindLoaded({"libnccl.so.2"})) return *std::move(loaded);
  return sdk::SharedLibrary::Open(
      cuda::WithPythonLibraries({"libnccl.so.2"}), "NCCL",
      "install NCCL (package libnccl2, or pip's nvidia-nccl-cu13 or -cu12 for the python3 that is first on "
      "PATH), name its folder in LD_LIBRARY_PATH, or set backend.nccl.library to its file");
}

int CheckedVersion(const sdk::SharedLibrary& library) {
  int version = 0;
  const sdk::Symbol symbol = library.Find("ncclGetVersion");
  if (!symbol.present()) {
    throw sdk::Failure(DTRUN_NOT_FOUND, "'" + library.path() +
                                            "' is not NCCL: it has no 'ncclGetVersion'; set "
                                            "backend.nccl.library to a libnccl.so.2, or leave it out");
  }
  nccl::Result (*const get_version)(int*) = symbol;
  get_version(&version);
  // Before 2.9 the number had one digit less for the minor; either way it is smaller.
  if (version >= kOldestNccl) return version;
  throw sdk::Failure(DTRUN_FAILED_PRECONDITION,
                     "NCCL " + NcclVersionText(version) + " at '" + library.path() +
                         "' is too old, needed is " + NcclVersionText(kOldestNccl) + " or newer" +
                         (library.was_loaded()
                              ? "; the program loaded it before dtrun did: upgrade the package that brings it"
                              : "; upgrade it or set backend.nccl.library to a newer one"));
}

}  // namespace

std::string NcclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclApi::NcclApi(const std::string& wanted) : library(FindNccl(wanted)), version(CheckedVersion(library)) {}

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

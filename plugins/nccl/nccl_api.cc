#include "nccl_api.h"

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

sdk::SharedLibrary FindNccl(const std::string& wanted) {
  if (!wanted.empty()) return sdk::SharedLibrary::Open({wanted}, "NCCL", "correct backend.options.library");
  // Torch brings an NCCL of its own. Two in one process would fight for the device's memory, and
  // an operation of the one could wait for a kernel of the other.
  if (auto loaded = sdk::SharedLibrary::FindLoaded({"libnccl.so.2"})) return *std::move(loaded);
  return sdk::SharedLibrary::Open({"libnccl.so.2"}, "NCCL",
                                  "install NCCL (package libnccl2, or pip's nvidia-nccl-cu13) or set "
                                  "backend.options.library to its file");
}

int CheckedVersion(const sdk::SharedLibrary& library) {
  int version = 0;
  nccl::Result (*const get_version)(int*) = library["ncclGetVersion"];
  get_version(&version);
  // Before 2.9 the number had one digit less for the minor; either way it is smaller.
  if (version >= kOldestNccl) return version;
  throw sdk::Failure(DTRUN_FAILED_PRECONDITION,
                     "NCCL " + NcclVersionText(version) + " at '" + library.path() +
                         "' is too old, needed is " + NcclVersionText(kOldestNccl) + " or newer" +
                         (library.was_loaded()
                              ? "; the program loaded it before dtrun did: upgrade the package that brings it"
                              : "; upgrade it or set backend.options.library to a newer one"));
}

}  // namespace

std::string NcclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclApi::NcclApi(const std::string& wanted) : library(FindNccl(wanted)), version(CheckedVersion(library)) {}

}  // namespace dtrun::nccl_plugin

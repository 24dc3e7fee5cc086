#include "nccl_api.h"

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {
namespace {

SharedLibrary FindNccl(const std::string& wanted) {
  if (!wanted.empty()) return SharedLibrary::Open({wanted}, "NCCL", "correct backend.options.library");
  // Torch brings an NCCL of its own. Two in one process would fight for the device's memory, and
  // an operation of the one could wait for a kernel of the other.
  if (auto loaded = SharedLibrary::FindLoaded({"libnccl.so.2"})) return *std::move(loaded);
  return SharedLibrary::Open({"libnccl.so.2"}, "NCCL",
                             "install NCCL (package libnccl2, or pip's nvidia-nccl-cu13) or set "
                             "backend.options.library to its file");
}

}  // namespace

std::string NcclVersionText(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

NcclApi NcclApi::Open(const std::string& wanted) {
  NcclApi api;
  api.library = FindNccl(wanted);
  const SharedLibrary& library = api.library;

  nccl::Result (*get_version)(int*) = nullptr;
  library.Resolve("ncclGetVersion", get_version);
  get_version(&api.version);
  // Before 2.9 the number had one digit less for the minor; either way it is smaller.
  if (api.version < kOldestNccl) {
    throw sdk::Failure(
        DTRUN_FAILED_PRECONDITION,
        "NCCL " + NcclVersionText(api.version) + " at '" + library.path() + "' is too old, needed is " +
            NcclVersionText(kOldestNccl) + " or newer" +
            (library.was_loaded()
                 ? "; the program loaded it before dtrun did: upgrade the package that brings it"
                 : "; upgrade it or set backend.options.library to a newer one"));
  }
  library.Resolve("ncclGetUniqueId", api.get_unique_id);
  library.Resolve("ncclCommInitRankConfig", api.comm_init_rank_config);
  library.Resolve("ncclCommFinalize", api.comm_finalize);
  library.Resolve("ncclCommDestroy", api.comm_destroy);
  library.Resolve("ncclCommAbort", api.comm_abort);
  library.Resolve("ncclCommGetAsyncError", api.comm_get_async_error);
  library.Resolve("ncclGetErrorString", api.get_error_string);
  library.Resolve("ncclGetLastError", api.get_last_error);
  library.Resolve("ncclRedOpCreatePreMulSum", api.red_op_create_pre_mul_sum);
  library.Resolve("ncclRedOpDestroy", api.red_op_destroy);
  library.Resolve("ncclAllReduce", api.all_reduce);
  library.Resolve("ncclReduce", api.reduce);
  library.Resolve("ncclBroadcast", api.broadcast);
  library.Resolve("ncclReduceScatter", api.reduce_scatter);
  library.Resolve("ncclAllGather", api.all_gather);
  library.Resolve("ncclSend", api.send);
  library.Resolve("ncclRecv", api.recv);
  library.Resolve("ncclGroupStart", api.group_start);
  library.Resolve("ncclGroupEnd", api.group_end);
  if (api.version >= nccl::Version(2, 28, 0)) library.ResolveIfPresent("ncclAlltoAll", api.all_to_all);
  return api;
}

}  // namespace dtrun::nccl_plugin

// A libnccl in this process: found, opened, checked. Constant once opened; any thread.
#pragma once

#include <string>
#include <string_view>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/shared_library.hpp"
#include "nccl_abi.h"

namespace dtrun::nccl_plugin {

// The oldest NCCL with communicators that can be made without blocking, aborted, and configured
// with the structure of nccl_abi.h.
inline constexpr int kOldestNccl = nccl::Version(2, 18, 0);

// 22809 -> "2.28.9".
std::string NcclVersionText(int version);

struct NcclApi {
  // `wanted` is the option `library`: a path, or empty: the libnccl that is already in the
  // process, else the loader's, else pip's. Throws sdk::Failure when there is none, when it is too old, or
  // when a function is missing.
  explicit NcclApi(const std::string& wanted);

  std::string VersionText() const { return NcclVersionText(version); }

  sdk::SharedLibrary library;
  int version;

  nccl::Result (*get_unique_id)(nccl::UniqueId*) = library["ncclGetUniqueId"];
  nccl::Result (*comm_init_rank_config)(nccl::Comm*, int, nccl::UniqueId, int,
                                        nccl::Config*) = library["ncclCommInitRankConfig"];
  nccl::Result (*comm_finalize)(nccl::Comm) = library["ncclCommFinalize"];
  nccl::Result (*comm_destroy)(nccl::Comm) = library["ncclCommDestroy"];
  nccl::Result (*comm_abort)(nccl::Comm) = library["ncclCommAbort"];
  nccl::Result (*comm_get_async_error)(nccl::Comm, nccl::Result*) = library["ncclCommGetAsyncError"];
  const char* (*get_error_string)(nccl::Result) = library["ncclGetErrorString"];
  const char* (*get_last_error)(nccl::Comm) = library["ncclGetLastError"];
  nccl::Result (*red_op_create_pre_mul_sum)(nccl::Reduction*, void*, nccl::DataType, int,
                                            nccl::Comm) = library["ncclRedOpCreatePreMulSum"];
  nccl::Result (*red_op_destroy)(nccl::Reduction, nccl::Comm) = library["ncclRedOpDestroy"];
  nccl::Result (*all_reduce)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, nccl::Comm,
                             nccl::CudaStream) = library["ncclAllReduce"];
  nccl::Result (*reduce)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, int, nccl::Comm,
                         nccl::CudaStream) = library["ncclReduce"];
  nccl::Result (*broadcast)(const void*, void*, std::size_t, nccl::DataType, int, nccl::Comm,
                            nccl::CudaStream) = library["ncclBroadcast"];
  nccl::Result (*reduce_scatter)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, nccl::Comm,
                                 nccl::CudaStream) = library["ncclReduceScatter"];
  nccl::Result (*all_gather)(const void*, void*, std::size_t, nccl::DataType, nccl::Comm,
                             nccl::CudaStream) = library["ncclAllGather"];
  nccl::Result (*send)(const void*, std::size_t, nccl::DataType, int, nccl::Comm,
                       nccl::CudaStream) = library["ncclSend"];
  nccl::Result (*recv)(void*, std::size_t, nccl::DataType, int, nccl::Comm,
                       nccl::CudaStream) = library["ncclRecv"];
  nccl::Result (*group_start)() = library["ncclGroupStart"];
  nccl::Result (*group_end)() = library["ncclGroupEnd"];

  // Null before 2.19.
  nccl::Result (*mem_alloc)(void**, std::size_t) = Since(nccl::Version(2, 19, 0), "ncclMemAlloc");
  nccl::Result (*mem_free)(void*) = Since(nccl::Version(2, 19, 0), "ncclMemFree");
  nccl::Result (*comm_register)(nccl::Comm, void*, std::size_t,
                                void** handle) = Since(nccl::Version(2, 19, 0), "ncclCommRegister");
  nccl::Result (*comm_deregister)(nccl::Comm, void* handle) = Since(nccl::Version(2, 19, 0),
                                                                    "ncclCommDeregister");
  // Null before 2.28.
  nccl::Result (*all_to_all)(const void*, void*, std::size_t, nccl::DataType, nccl::Comm,
                             nccl::CudaStream) = Since(nccl::Version(2, 28, 0), "ncclAlltoAll");

 private:
  // Null where the library is older, or lacks it.
  sdk::Symbol Since(int oldest, const char* name) const {
    return library.Find(version >= oldest ? name : "");
  }
};

// NCCL's error as one sentence that ends with the next step; the verdict and `dtrun explain` say what NCCL's
// texts mean. `doing` is a phrase such as "make communicator 'world'".
sdk::Failure NcclFailure(const std::string& doing, nccl::Result result, std::string_view error_string,
                         std::string_view last_error);
// As above, with the texts of `api`.
sdk::Failure NcclFailure(const NcclApi& api, const std::string& doing, nccl::Result result);

}  // namespace dtrun::nccl_plugin

// A libnccl in this process: found, opened, checked, its functions resolved one by one.
//
// A plugin that linked libnccl would end in "undefined symbol" with every other version than
// its own. Constant once opened, never closed (NCCL's threads outlive its communicators); any
// thread.
#pragma once

#include <string>

#include "nccl_abi.h"
#include "shared_library.h"

namespace dtrun::nccl_plugin {

// The oldest NCCL whose communicators can be made without blocking, aborted, and configured
// with the structure of nccl_abi.h.
inline constexpr int kOldestNccl = nccl::Version(2, 18, 0);

// 22809 -> "2.28.9".
std::string NcclVersionText(int version);

struct NcclApi {
  // `wanted` is the option `library`: a path, or empty: the libnccl that is already in the
  // process, else the loader's. Throws sdk::Failure when there is none, when it is too old, or
  // when a function is missing.
  static NcclApi Open(const std::string& wanted);

  std::string VersionText() const { return NcclVersionText(version); }

  SharedLibrary library;
  int version = 0;

  nccl::Result (*get_unique_id)(nccl::UniqueId*) = nullptr;
  nccl::Result (*comm_init_rank_config)(nccl::Comm*, int, nccl::UniqueId, int, nccl::Config*) = nullptr;
  nccl::Result (*comm_finalize)(nccl::Comm) = nullptr;
  nccl::Result (*comm_destroy)(nccl::Comm) = nullptr;
  nccl::Result (*comm_abort)(nccl::Comm) = nullptr;
  nccl::Result (*comm_get_async_error)(nccl::Comm, nccl::Result*) = nullptr;
  const char* (*get_error_string)(nccl::Result) = nullptr;
  const char* (*get_last_error)(nccl::Comm) = nullptr;
  nccl::Result (*red_op_create_pre_mul_sum)(nccl::Reduction*, void*, nccl::DataType, int,
                                            nccl::Comm) = nullptr;
  nccl::Result (*red_op_destroy)(nccl::Reduction, nccl::Comm) = nullptr;
  nccl::Result (*all_reduce)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, nccl::Comm,
                             nccl::CudaStream) = nullptr;
  nccl::Result (*reduce)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, int, nccl::Comm,
                         nccl::CudaStream) = nullptr;
  nccl::Result (*broadcast)(const void*, void*, std::size_t, nccl::DataType, int, nccl::Comm,
                            nccl::CudaStream) = nullptr;
  nccl::Result (*reduce_scatter)(const void*, void*, std::size_t, nccl::DataType, nccl::Reduction, nccl::Comm,
                                 nccl::CudaStream) = nullptr;
  nccl::Result (*all_gather)(const void*, void*, std::size_t, nccl::DataType, nccl::Comm,
                             nccl::CudaStream) = nullptr;
  nccl::Result (*send)(const void*, std::size_t, nccl::DataType, int, nccl::Comm, nccl::CudaStream) = nullptr;
  nccl::Result (*recv)(void*, std::size_t, nccl::DataType, int, nccl::Comm, nccl::CudaStream) = nullptr;
  nccl::Result (*group_start)() = nullptr;
  nccl::Result (*group_end)() = nullptr;

  // Null before 2.28.
  nccl::Result (*all_to_all)(const void*, void*, std::size_t, nccl::DataType, nccl::Comm,
                             nccl::CudaStream) = nullptr;
};

}  // namespace dtrun::nccl_plugin

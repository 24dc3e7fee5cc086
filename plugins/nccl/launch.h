// Turns operations into NCCL calls. What NCCL has not, it gets as grouped sends and receives.
//
// Pure but for the calls; used by one thread at a time.
#pragma once

#include <vector>

#include "handle.h"
#include "operation.h"

namespace dtrun::nccl_plugin {

// Reductions that NCCL made for DTRUN_PREMUL_SUM; freed at the end, when the calls that use them
// have been launched.
class Reductions {
 public:
  Reductions(const NcclApi& api, Handle& handle) : api_(api), handle_(handle) {}
  ~Reductions();
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  // The reduction for `operation`. Not between group start and end. Throws sdk::Failure.
  nccl::Reduction For(const Operation& operation);

 private:
  const NcclApi& api_;
  Handle& handle_;
  std::vector<nccl::Reduction> made_;
};

// Where the calls go.
struct Launcher {
  const NcclApi& api;
  nccl::Comm comm;
  int rank;
  int size;
  void* scratch;  // 2 * kScratchWord bytes of device memory, for who moves nothing

  static constexpr std::size_t kScratchWord = 16;

  // To be called inside an NCCL group. What the first failing call returned, else success.
  nccl::Result Start(const Operation& operation, nccl::Reduction reduction) const;

 private:
  nccl::Result ReduceParts(const Operation& operation, nccl::Reduction reduction) const;
  nccl::Result Exchange(const Operation& operation) const;
  nccl::Result Message(const Operation& operation) const;
};

// The scale of DTRUN_PREMUL_SUM as a value of `dtype`, or of its parts.
union Scalar {
  float float32;
  double float64;
  std::uint16_t word;
};
Scalar EncodeScalar(double value, std::int32_t dtype);

}  // namespace dtrun::nccl_plugin

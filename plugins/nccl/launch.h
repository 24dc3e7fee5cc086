// Turns operations into NCCL calls. What NCCL has not, it gets as grouped sends and receives.
//
// Pure but for the calls; used by one thread at a time.
#pragma once

#include <vector>

#include "handle.h"
#include "nccl_api.h"
#include "operation.h"

namespace dtrun::nccl_plugin {

using sdk::At;

inline bool Failed(nccl::Result result) { return result != nccl::kSuccess && result != nccl::kInProgress; }

inline nccl::Reduction BuiltInReduction(std::int32_t reduce) {
  switch (reduce) {
    case DTRUN_PROD: return nccl::kProd;
    case DTRUN_MIN: return nccl::kMin;
    case DTRUN_MAX: return nccl::kMax;
    case DTRUN_AVG: return nccl::kAvg;
    default: return nccl::kSum;
  }
}

// The scale of DTRUN_PREMUL_SUM as a value of `dtype`, or of its parts.
union Scalar {
  float float32;
  double float64;
  std::uint16_t word;
};
inline Scalar EncodeScalar(double value, std::int32_t dtype) {
  const auto narrower = static_cast<float>(value);
  Scalar scalar{};
  switch (dtype) {
    case DTRUN_FLOAT16:
    case DTRUN_BFLOAT16: kernels::Narrow(&scalar.word, &narrower, 1, dtype); break;
    case DTRUN_FLOAT64:
    case DTRUN_COMPLEX128: scalar.float64 = value; break;
    default: scalar.float32 = narrower;
  }
  return scalar;
}

// Reductions that NCCL made for DTRUN_PREMUL_SUM; freed at the end, when the calls that use them
// have been launched.
class Reductions {
 public:
  Reductions(const NcclApi& api, Handle& handle) : api_(api), handle_(handle) {}
  ~Reductions() {
    for (const nccl::Reduction reduction : made_) {
      handle_.Use([&](nccl::Comm comm) { return api_.red_op_destroy(reduction, comm); });
    }
  }
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  // The reduction for `operation`. Not between group start and end. Throws sdk::Failure.
  nccl::Reduction For(const Operation& operation) {
    if (!sdk::IsReduction(operation.op->kind)) return nccl::kSum;
    if (operation.op->reduce != DTRUN_PREMUL_SUM) return BuiltInReduction(operation.op->reduce);
    Scalar scalar = EncodeScalar(operation.op->scale, operation.op->dtype);
    nccl::Reduction reduction = nccl::kSum;
    const nccl::Result result = handle_.Use([&](nccl::Comm comm) {
      return api_.red_op_create_pre_mul_sum(&reduction, &scalar, operation.wire.type,
                                            nccl::kScalarHostImmediate, comm);
    });
    if (result != nccl::kSuccess) throw NcclFailure(api_, "make the scaled sum of " + operation.text, result);
    made_.push_back(reduction);
    return reduction;
  }

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
  nccl::Result Start(const Operation& operation, nccl::Reduction reduction) const {
    const dtrun_op& op = *operation.op;
    const nccl::DataType type = operation.wire.type;
    const std::uint64_t count = op.count * operation.wire.per_element;
    const cuda::Stream stream = operation.stream;
    // A collective of no elements calls nothing; a message of none is a message all the same.
    const bool counted = op.kind == DTRUN_ALLREDUCE || op.kind == DTRUN_BROADCAST ||
                         op.kind == DTRUN_REDUCE || op.kind == DTRUN_ALLGATHER ||
                         op.kind == DTRUN_REDUCE_SCATTER;
    if (counted && count == 0) return nccl::kSuccess;
    switch (op.kind) {
      case DTRUN_BARRIER: return api.all_reduce(scratch, scratch, 1, nccl::kInt32, nccl::kSum, comm, stream);
      case DTRUN_ALLREDUCE: return api.all_reduce(op.send, op.recv, count, type, reduction, comm, stream);
      case DTRUN_BROADCAST: return api.broadcast(op.recv, op.recv, count, type, op.root, comm, stream);
      case DTRUN_REDUCE: return api.reduce(op.send, op.recv, count, type, reduction, op.root, comm, stream);
      case DTRUN_ALLGATHER: return api.all_gather(op.send, op.recv, count, type, comm, stream);
      case DTRUN_REDUCE_SCATTER:
        return api.reduce_scatter(op.send, op.recv, count, type, reduction, comm, stream);
      case DTRUN_REDUCE_SCATTERV: return ReduceParts(operation, reduction);
      case DTRUN_SEND:
      case DTRUN_RECV: return Message(operation);
      case DTRUN_ALLTOALL:
        if (api.all_to_all != nullptr && operation.copy.data() == nullptr && count > 0) {
          return api.all_to_all(op.send, op.recv, count, type, comm, stream);
        }
        return Exchange(operation);
      default: return Exchange(operation);
    }
  }

 private:
  nccl::Result ReduceParts(const Operation& operation, nccl::Reduction reduction) const {
    const dtrun_op& op = *operation.op;
    const sdk::Parts parts = sdk::SendParts(op, rank, size);
    for (int root = 0; root < size; ++root) {
      const sdk::Part& part = parts[static_cast<std::size_t>(root)];
      if (part.size == 0) continue;
      const nccl::Result result =
          api.reduce(At(op.send, part.begin, operation.width), root == rank ? op.recv : nullptr,
                     part.size * operation.wire.per_element, operation.wire.type, reduction, root, comm,
                     operation.stream);
      if (Failed(result)) return result;
    }
    return nccl::kSuccess;
  }

  // Ranks agree on who sends nothing, so such parts are left out on both sides. A rank's own part goes
  // through NCCL too, unless it is there.
  nccl::Result Exchange(const Operation& operation) const {
    const dtrun_op& op = *operation.op;
    const void* const send_from = operation.copy.data() != nullptr ? operation.copy.data() : op.send;
    const sdk::Parts gives = sdk::SendParts(op, rank, size), takes = sdk::RecvParts(op, rank, size);
    for (int peer = 0; peer < size; ++peer) {
      const sdk::Part& out = gives[static_cast<std::size_t>(peer)];
      const sdk::Part& in = takes[static_cast<std::size_t>(peer)];
      const void* const from = At(send_from, out.begin, operation.width);
      void* const to = At(op.recv, in.begin, operation.width);
      if (peer == rank && from == to) continue;
      nccl::Result result = nccl::kSuccess;
      if (out.size > 0) {
        result = api.send(from, out.size * operation.wire.per_element, operation.wire.type, peer, comm,
                          operation.stream);
      }
      if (!Failed(result) && in.size > 0) {
        result = api.recv(to, in.size * operation.wire.per_element, operation.wire.type, peer, comm,
                          operation.stream);
      }
      if (Failed(result)) return result;
    }
    return nccl::kSuccess;
  }

  // A message of no elements is one byte, so that it still says that the sender came this far.
  nccl::Result Message(const Operation& operation) const {
    const dtrun_op& op = *operation.op;
    const std::uint64_t count = op.count == 0 ? 1 : op.count * operation.wire.per_element;
    if (op.kind == DTRUN_SEND) {
      const void* const from = op.count == 0 ? scratch : op.send;
      return api.send(from, count, operation.wire.type, op.peer, comm, operation.stream);
    }
    void* const to = op.count == 0 ? static_cast<char*>(scratch) + kScratchWord : op.recv;
    return api.recv(to, count, operation.wire.type, op.peer, comm, operation.stream);
  }
};

}  // namespace dtrun::nccl_plugin

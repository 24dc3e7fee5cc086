// One operation from enqueue to its outcome: what to do, where, until when, and how it ended.
//
// Element types and reductions are given in NCCL's words, as far as NCCL has them. Made by the communicator,
// shared by it (while the operation waits in a group) and its request. What is done is constant; how it goes
// belongs to the communicator's lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "device_memory.h"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/names.hpp"
#include "dtrun/plugin/op.hpp"
#include "nccl_abi.h"

namespace dtrun::nccl_plugin {

// A buffer in NCCL's words: `per_element` values of `type` stand for one element.
struct Wire {
  nccl::DataType type;
  std::uint64_t per_element;
};

// What NCCL computes with.
inline std::optional<Wire> NumberAs(std::int32_t dtype) {
  switch (dtype) {
    case DTRUN_FLOAT16: return Wire{nccl::kFloat16, 1};
    case DTRUN_BFLOAT16: return Wire{nccl::kBfloat16, 1};
    case DTRUN_FLOAT32: return Wire{nccl::kFloat32, 1};
    case DTRUN_FLOAT64: return Wire{nccl::kFloat64, 1};
    case DTRUN_INT32: return Wire{nccl::kInt32, 1};
    case DTRUN_INT64: return Wire{nccl::kInt64, 1};
    case DTRUN_UINT8: return Wire{nccl::kUint8, 1};
    case DTRUN_INT8: return Wire{nccl::kInt8, 1};
    case DTRUN_UINT32: return Wire{nccl::kUint32, 1};
    case DTRUN_UINT64: return Wire{nccl::kUint64, 1};
    case DTRUN_COMPLEX64: return Wire{nccl::kFloat32, 2};
    case DTRUN_COMPLEX128: return Wire{nccl::kFloat64, 2};
    // No 16-bit integers. The maximum of bytes is no logical or: any byte that is not 0 is true, and
    // results are 0 or 1.
    default: return std::nullopt;
  }
}

// For moving: as bytes.
inline Wire MoveAs(std::int32_t dtype) { return {nccl::kInt8, kernels::ElementBytes(dtype)}; }

// Masks of dtrun_backend_caps: what is supported with at least one partner.
constexpr std::uint64_t SupportedReduces() {
  return sdk::Bits({DTRUN_SUM, DTRUN_PROD, DTRUN_MIN, DTRUN_MAX, DTRUN_AVG, DTRUN_PREMUL_SUM});
}
constexpr std::uint64_t SupportedTypes() {
  return sdk::Bits({DTRUN_FLOAT16, DTRUN_BFLOAT16, DTRUN_FLOAT32, DTRUN_FLOAT64, DTRUN_INT32, DTRUN_INT64,
                    DTRUN_UINT8, DTRUN_INT8, DTRUN_UINT32, DTRUN_UINT64, DTRUN_COMPLEX64, DTRUN_COMPLEX128});
}

// Whether NCCL has the pair.
inline bool CanReduce(std::int32_t dtype, std::int32_t reduce) {
  const std::optional<Wire> wire = NumberAs(dtype);
  const bool complex = wire && wire->per_element == 2;
  return wire && (SupportedReduces() >> reduce & 1) != 0 && !(complex && reduce == DTRUN_PROD);
}

// For reducing. Throws sdk::Failure, DTRUN_UNSUPPORTED, where NCCL lacks the pair. A complex number
// is two floats to a sum, an average and a product with a real scale.
inline Wire ReduceAs(std::int32_t dtype, std::int32_t reduce) {
  if (CanReduce(dtype, reduce)) return *NumberAs(dtype);
  throw sdk::Failure(DTRUN_UNSUPPORTED, std::string("nccl has no ") + sdk::ReductionName(reduce) + " of " +
                                            sdk::TypeName(dtype) +
                                            "; convert the buffer or choose another backend for it");
}

using Clock = sdk::Deadline::Clock;

enum class Phase {
  kGrouped,   // not started yet: in a group, or on its way
  kLaunched,  // handed to the device; its event is recorded
  kDone,
  kFailed,  // the communicator's failure is its own
};

struct Operation {
  // For a communicator of `ranks`. Throws sdk::Failure for what NCCL lacks.
  Operation(const dtrun_op& given, int ranks, cuda::Stream on)
      : op(given, ranks),
        width(kernels::ElementBytes(given.dtype)),
        wire(sdk::IsReduction(given.kind) ? ReduceAs(given.dtype, given.reduce) : MoveAs(given.dtype)),
        stream(on),
        deadline(sdk::Nanoseconds(given.timeout_ns)),
        text(sdk::OperationText(given)) {
    // Ignoring the tag would deliver the wrong message to a caller that relies on it.
    if (!point_to_point() || given.tag == 0) return;
    throw sdk::Failure(
        DTRUN_UNSUPPORTED,
        text +
            ": nccl's messages have no tags, so it would be lost; use tag 0 and receive in the "
            "order of the sends");
  }

  const sdk::OwnedOp op;
  const std::uint64_t width;  // bytes of an element
  const Wire wire;
  const cuda::Stream stream;
  const sdk::Deadline deadline;
  const std::string text;     // "allreduce 5", "recv from rank 2 with tag 0"
  std::uint64_t message = 0;  // send, recv: its number between the two ranks, from 1
  Clock::time_point begun = Clock::now();

  DeviceBuffer copy;  // of the send buffer, where NCCL would overwrite what it has yet to send
  Phase phase = Phase::kGrouped;
  cuda::Event event = nullptr;
  bool dropped = false;  // its request is gone
  bool ordered = false;  // a stream waits for it, so the host need not

  bool point_to_point() const { return !sdk::IsCollective(op->kind); }
  // Without a request: its stream may be captured into a graph, and then the end cannot be queried.
  bool detached() const { return (op->flags & DTRUN_OP_DETACHED) != 0; }
  // NCCL would overwrite what it has yet to send.
  bool needs_copy(int ranks) const {
    return (op->kind == DTRUN_ALLTOALL || op->kind == DTRUN_ALLTOALLV) && op->send == op->recv && ranks > 1;
  }
};

// How far a rank has come: which calls it has started.
struct Progress {
  std::uint64_t collective = 0;           // sequence number of the last one
  std::map<int, std::uint64_t> messages;  // to and from each peer

  // For the key-value space.
  std::string Encode() const {
    std::ostringstream text;
    text << collective;
    for (const auto& [peer, count] : messages) text << ' ' << peer << ' ' << count;
    return text.str();
  }

  static Progress Decode(const std::string& encoded) {
    std::istringstream text(encoded);
    Progress progress;
    text >> progress.collective;
    int peer = 0;
    std::uint64_t count = 0;
    while (text >> peer >> count) progress.messages[peer] = count;
    return progress;
  }
};

}  // namespace dtrun::nccl_plugin

#include "launch.h"

#include <bit>

#include "nccl_failure.h"

namespace dtrun::nccl_plugin {
namespace {

// The upper half of a float32, rounded to nearest, ties to even.
std::uint16_t ToBfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Fabian Giesen, "Float->half variants" (float_to_half_fast3_rtne, public domain).
std::uint16_t ToFloat16(float value) {
  constexpr std::uint32_t kInfinity = 255u << 23;
  constexpr std::uint32_t kTooLarge = (127u + 16u) << 23;
  constexpr std::uint32_t kDenormalMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
  auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  bits ^= sign;
  std::uint32_t half = 0;
  if (bits >= kTooLarge) {
    half = bits > kInfinity ? 0x7e00u : 0x7c00u;
  } else if (bits < (113u << 23)) {
    const float shifted = std::bit_cast<float>(bits) + std::bit_cast<float>(kDenormalMagic);
    half = std::bit_cast<std::uint32_t>(shifted) - kDenormalMagic;
  } else {
    const std::uint32_t odd = (bits >> 13) & 1u;
    half = (bits - ((127u - 15u) << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<std::uint16_t>(half | (sign >> 16));
}

bool Failed(nccl::Result result) { return result != nccl::kSuccess && result != nccl::kInProgress; }

const char* At(const void* buffer, std::uint64_t element, std::uint64_t width) {
  return static_cast<const char*>(buffer) + element * width;
}
char* At(void* buffer, std::uint64_t element, std::uint64_t width) {
  return static_cast<char*>(buffer) + element * width;
}

}  // namespace

Scalar EncodeScalar(double value, nccl::DataType type) {
  Scalar scalar{};
  switch (type) {
    case nccl::kFloat16: scalar.word = ToFloat16(static_cast<float>(value)); break;
    case nccl::kBfloat16: scalar.word = ToBfloat16(static_cast<float>(value)); break;
    case nccl::kFloat64: scalar.float64 = value; break;
    default: scalar.float32 = static_cast<float>(value); break;
  }
  return scalar;
}

Reductions::~Reductions() {
  for (const nccl::Reduction reduction : made_) {
    handle_.Use([&](nccl::Comm comm) { return api_.red_op_destroy(reduction, comm); });
  }
}

nccl::Reduction Reductions::For(const Operation& operation) {
  if (!Reduces(operation.op.kind)) return nccl::kSum;
  if (operation.op.reduce != DTRUN_PREMUL_SUM) return BuiltInReduction(operation.op.reduce);
  Scalar scalar = EncodeScalar(operation.op.scale, operation.wire.type);
  nccl::Reduction reduction = nccl::kSum;
  const nccl::Result result = handle_.Use([&](nccl::Comm comm) {
    return api_.red_op_create_pre_mul_sum(&reduction, &scalar, operation.wire.type,
                                          nccl::kScalarHostImmediate, comm);
  });
  if (result != nccl::kSuccess) throw NcclFailure(api_, "make the scaled sum of " + operation.text, result);
  made_.push_back(reduction);
  return reduction;
}

nccl::Result Launcher::Start(const Operation& operation, nccl::Reduction reduction) const {
  const dtrun_op& op = operation.op;
  const nccl::DataType type = operation.wire.type;
  const std::uint64_t count = op.count * operation.wire.per_element;
  const cuda::Stream stream = operation.stream;
  switch (op.kind) {
    case DTRUN_BARRIER: return api.all_reduce(scratch, scratch, 1, nccl::kInt32, nccl::kSum, comm, stream);
    case DTRUN_ALLREDUCE:
      if (count == 0) return nccl::kSuccess;
      return api.all_reduce(op.send, op.recv, count, type, reduction, comm, stream);
    case DTRUN_BROADCAST:
      if (count == 0) return nccl::kSuccess;
      return api.broadcast(op.recv, op.recv, count, type, op.root, comm, stream);
    case DTRUN_REDUCE:
      if (count == 0) return nccl::kSuccess;
      return api.reduce(op.send, op.recv, count, type, reduction, op.root, comm, stream);
    case DTRUN_ALLGATHER:
      if (count == 0) return nccl::kSuccess;
      return api.all_gather(op.send, op.recv, count, type, comm, stream);
    case DTRUN_REDUCE_SCATTER:
      if (count == 0) return nccl::kSuccess;
      return api.reduce_scatter(op.send, op.recv, count, type, reduction, comm, stream);
    case DTRUN_REDUCE_SCATTERV:
      for (int root = 0; root < size; ++root) {
        const Part& part = operation.recv_parts[static_cast<std::size_t>(root)];
        if (part.count == 0) continue;
        const nccl::Result result =
            api.reduce(At(op.send, part.offset, operation.width), root == rank ? op.recv : nullptr,
                       part.count * operation.wire.per_element, type, reduction, root, comm, stream);
        if (Failed(result)) return result;
      }
      return nccl::kSuccess;
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

// A message of no elements is one byte, so that it still says that the sender came this far.
nccl::Result Launcher::Message(const Operation& operation) const {
  const dtrun_op& op = operation.op;
  const std::uint64_t count = op.count == 0 ? 1 : op.count * operation.wire.per_element;
  if (op.kind == DTRUN_SEND) {
    const void* const from = op.count == 0 ? scratch : op.send;
    return api.send(from, count, operation.wire.type, op.peer, comm, operation.stream);
  }
  void* const to = op.count == 0 ? static_cast<char*>(scratch) + kScratchWord : op.recv;
  return api.recv(to, count, operation.wire.type, op.peer, comm, operation.stream);
}

// What goes where: part `peer` to and from each peer. Ranks agree on who sends nothing, so such
// parts are left out on both sides. A rank's own part goes through NCCL too, unless it is there.
nccl::Result Launcher::Exchange(const Operation& operation) const {
  const dtrun_op& op = operation.op;
  const void* const send_from = operation.copy.data() != nullptr ? operation.copy.data() : op.send;
  const bool root = op.root == rank;
  const bool gathers = op.kind == DTRUN_GATHER || op.kind == DTRUN_GATHERV;
  const bool scatters = op.kind == DTRUN_SCATTER || op.kind == DTRUN_SCATTERV;
  const auto self = static_cast<std::size_t>(rank);
  for (int peer = 0; peer < size; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    Part out;
    if (gathers) {
      out = {0, peer == op.root ? op.count : 0};
    } else if (scatters) {
      if (root) out = operation.send_parts[index];
    } else if (op.kind == DTRUN_ALLGATHERV) {
      out = {0, operation.recv_parts[self].count};
    } else {
      out = operation.send_parts[index];
    }
    Part in;
    if (scatters) {
      in = {0, peer == op.root ? op.count : 0};
    } else if (!gathers || root) {
      in = operation.recv_parts[index];
    }
    const void* const from = At(send_from, out.offset, operation.width);
    void* const to = At(op.recv, in.offset, operation.width);
    if (peer == rank && from == to) continue;
    nccl::Result result = nccl::kSuccess;
    if (out.count > 0) {
      result = api.send(from, out.count * operation.wire.per_element, operation.wire.type, peer, comm,
                        operation.stream);
    }
    if (!Failed(result) && in.count > 0) {
      result = api.recv(to, in.count * operation.wire.per_element, operation.wire.type, peer, comm,
                        operation.stream);
    }
    if (Failed(result)) return result;
  }
  return nccl::kSuccess;
}

}  // namespace dtrun::nccl_plugin

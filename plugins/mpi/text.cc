#include "text.h"

#include <iterator>

namespace dtrun::mpi_plugin {
namespace {

constexpr const char* kKinds[] = {
    "operation 0", "allreduce", "broadcast", "allgather", "reduce-scatter", "barrier",    "send",
    "recv",        "reduce",    "alltoall",  "gather",    "scatter",        "allgatherv", "reduce-scatterv",
    "alltoallv",   "gatherv",   "scatterv"};
constexpr const char* kTypes[] = {"",       "float16", "bfloat16",  "float32",   "float64", "int32",
                                  "int64",  "uint8",   "int8",      "int16",     "uint16",  "uint32",
                                  "uint64", "bool",    "complex64", "complex128"};
constexpr const char* kReduces[] = {"",           "sum",  "prod", "min",  "max",  "avg",
                                    "premul-sum", "band", "bor",  "bxor", "land", "lor"};
static_assert(std::size(kKinds) == DTRUN_OP_COUNT);
static_assert(std::size(kTypes) == DTRUN_DTYPE_COUNT);
static_assert(std::size(kReduces) == DTRUN_REDUCE_COUNT);

template <std::size_t Size>
const char* Find(const char* const (&names)[Size], std::int32_t value) {
  return value > 0 && value < static_cast<std::int32_t>(Size) ? names[value] : "unknown";
}

}  // namespace

const char* KindText(std::int32_t kind) { return Find(kKinds, kind); }

std::string DescribeCall(std::int32_t kind, std::int32_t dtype, std::int32_t reduce, std::int32_t root,
                         std::uint64_t count) {
  std::string text = KindText(kind);
  if (kind == DTRUN_BARRIER) return text;
  text += " of " + std::to_string(count) + " " + Find(kTypes, dtype);
  if (reduce != 0) text += std::string(" (") + Find(kReduces, reduce) + ")";
  if (root >= 0) text += " with root " + std::to_string(root);
  return text;
}

std::string OperationText(const dtrun_op& op) {
  if (op.kind != DTRUN_SEND && op.kind != DTRUN_RECV)
    return std::string(KindText(op.kind)) + " " + std::to_string(op.sequence);
  const std::string peer = op.peer == DTRUN_ANY_SOURCE ? "any rank" : "rank " + std::to_string(op.peer);
  return std::string(KindText(op.kind)) + (op.kind == DTRUN_SEND ? " to " : " from ") + peer + " with tag " +
         std::to_string(op.tag);
}

}  // namespace dtrun::mpi_plugin

#include "tools/bench/program/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/text.h"

namespace dtrun::bench {
namespace {

// In the order of the enumeration.
constexpr std::array<const char*, 9> kNames = {"allreduce", "reduce",         "broadcast",
                                               "allgather", "reduce_scatter", "alltoall",
                                               "sendrecv",  "barrier",        "memcpy"};

}  // namespace

const char* OperationName(Operation operation) { return kNames.at(static_cast<std::size_t>(operation)); }

Result<Operation> ParseOperation(std::string_view name) {
  const auto last = kNames.end() - 1;
  const auto found = std::find(kNames.begin(), last, name);
  if (found != last) return static_cast<Operation>(found - kNames.begin());
  const auto nearest = Nearest(name, std::vector<std::string>(kNames.begin(), last));
  return Error{DTRUN_INVALID_ARGUMENT,
               fmt::format("unknown operation '{}'{}; expected one of {}", name,
                           nearest ? fmt::format(" (did you mean '{}'?)", *nearest) : "", OperationNames())};
}

std::string OperationNames() { return fmt::format("{}", fmt::join(kNames.begin(), kNames.end() - 1, ", ")); }

Shape ShapeOf(Operation operation, std::uint64_t ranks, std::uint64_t bytes, std::uint64_t element_size) {
  const std::uint64_t whole = std::max<std::uint64_t>(bytes / element_size, 1);
  const std::uint64_t part = std::max<std::uint64_t>(whole / ranks, 1);
  Shape shape;
  switch (operation) {
    case Operation::kBarrier: return shape;
    case Operation::kAllgather: shape = {part, part, part * ranks, 0}; break;
    case Operation::kReduceScatter: shape = {part, part * ranks, part, 0}; break;
    case Operation::kAlltoall: shape = {part, part * ranks, part * ranks, 0}; break;
    default: shape = {whole, whole, whole, 0}; break;
  }
  shape.bytes = std::max(shape.send, shape.recv) * element_size;
  return shape;
}

double BusFactor(Operation operation, std::uint64_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (operation) {
    case Operation::kAllreduce: return 2 * (n - 1) / n;
    case Operation::kAllgather:
    case Operation::kReduceScatter:
    case Operation::kAlltoall: return (n - 1) / n;
    default: return 1;
  }
}

}  // namespace dtrun::bench

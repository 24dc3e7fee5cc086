#include <cstring>

#include "dtrun/algorithms.hpp"
#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::algorithms {
namespace {

// The single part of a buffer that has one part per rank.
sdk::Part OnlyPart(const dtrun_op& op, sdk::Shape shape) {
  const auto first = [](const std::uint64_t* offsets) { return offsets == nullptr ? 0 : offsets[0]; };
  switch (shape) {
    case sdk::Shape::kNone: return {};
    case sdk::Shape::kSendParts: return {first(op.send_offsets), op.send_counts[0]};
    case sdk::Shape::kRecvParts: return {first(op.recv_offsets), op.recv_counts[0]};
    case sdk::Shape::kMine: return {0, op.recv_counts[0]};
    default: return {0, op.count};
  }
}

}  // namespace

void RunAlone(const dtrun_op& op) {
  const sdk::Form& form = sdk::FormOf(op.kind);
  const sdk::Part send = OnlyPart(op, form.send), recv = OnlyPart(op, form.recv);
  if (send.size == 0 || recv.size == 0) return;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const void* const from = static_cast<const std::byte*>(op.send) + send.begin * width;
  void* const to = static_cast<std::byte*>(op.recv) + recv.begin * width;
  if (form.reduces && op.reduce == DTRUN_PREMUL_SUM) {
    kernels::Scale(to, from, recv.size, op.dtype, op.scale);
  } else if (form.reduces && (op.dtype == DTRUN_BOOL || op.reduce == DTRUN_LAND || op.reduce == DTRUN_LOR)) {
    kernels::ReduceFor(op.dtype, op.reduce)(to, &from, 1, recv.size);  // results are 0 or 1
  } else if (from != to) {
    std::memcpy(to, from, recv.size * width);
  }
}

}  // namespace dtrun::algorithms

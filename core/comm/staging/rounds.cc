#include "core/comm/staging/rounds.h"

#include <algorithm>

#include "core/comm/operation.h"

namespace dtrun::comm {
namespace {

using sdk::Form;
using sdk::On;
using sdk::Shape;

bool IsEven(Shape shape) {
  return shape == Shape::kNone || shape == Shape::kCount || shape == Shape::kCountEach;
}

bool CanBeCut(const dtrun_op& op) {
  const Form& form = sdk::FormOf(op.kind);
  // A sender does not know whether its message meets a receive from any rank, which could get pieces of
  // several.
  return sdk::IsCollective(op.kind) && op.kind != DTRUN_BARRIER && IsEven(form.send) && IsEven(form.recv);
}

bool Uses(const dtrun_op& op, Shape shape, On on, int rank) {
  return shape != Shape::kNone && (on == On::kEveryRank || op.root == rank);
}

}  // namespace

Rounds::Rounds(const dtrun_op& op, int rank, int size, std::uint64_t most_bytes)
    : op_(op), rank_(rank), size_(size), width_(DtypeSize(op.dtype)) {
  if (!CanBeCut(op)) return;
  const Form& form = sdk::FormOf(op.kind);
  const bool each = form.send == Shape::kCountEach || form.recv == Shape::kCountEach;
  const std::uint64_t part = width_ * (each ? static_cast<std::uint64_t>(size) : 1);
  each_ = std::max<std::uint64_t>(1, most_bytes / part);
  rounds_ = std::max<std::uint64_t>(1, op.count / each_ + (op.count % each_ != 0));
}

Round Rounds::At(std::uint64_t index) const {
  if (each_ == 0) return Whole();
  const Form& form = sdk::FormOf(op_.kind);
  const std::uint64_t at = index * each_;
  Round round;
  round.count = std::min(each_, op_.count - at);
  const auto plan = [&](Shape shape, On on, std::vector<StagedCopy>& copies) -> std::uint64_t {
    if (!Uses(op_, shape, on, rank_)) return 0;
    const std::uint64_t parts = shape == Shape::kCountEach ? static_cast<std::uint64_t>(size_) : 1;
    for (std::uint64_t part = 0; part < parts; ++part) {
      copies.push_back({(part * op_.count + at) * width_, part * round.count * width_, round.count * width_});
    }
    return parts * round.count * width_;
  };
  round.send_bytes = plan(form.send, form.send_on, round.out);
  round.recv_bytes = plan(form.recv, form.recv_on, round.in);
  if (op_.kind == DTRUN_BROADCAST && op_.root == rank_) {  // sends from where others receive
    round.out = std::move(round.in);
    round.in.clear();
  }
  round.in_place = op_.kind == DTRUN_ALLREDUCE;
  return round;
}

Round Rounds::Whole() const {
  const Form& form = sdk::FormOf(op_.kind);
  Round round;
  round.count = op_.count;
  const auto plan = [&](Shape shape, On on, std::vector<StagedCopy>& copies) -> std::uint64_t {
    if (!Uses(op_, shape, on, rank_)) return 0;
    sdk::Parts parts;
    switch (shape) {
      case Shape::kMine: parts = {{0, op_.recv_counts[rank_]}}; break;
      case Shape::kSendParts: parts = sdk::GivenParts(op_.send_counts, op_.send_offsets, size_); break;
      case Shape::kRecvParts: parts = sdk::GivenParts(op_.recv_counts, op_.recv_offsets, size_); break;
      default: parts = {{0, op_.count}};
    }
    for (const sdk::Part& part : parts) {
      const std::uint64_t at = part.begin * width_, bytes = part.size * width_;
      if (bytes == 0) continue;
      if (!copies.empty() && copies.back().device + copies.back().bytes == at) {
        copies.back().bytes += bytes;
      } else {
        copies.push_back({at, at, bytes});
      }
    }
    return sdk::EndOf(parts) * width_;
  };
  round.send_bytes = plan(form.send, form.send_on, round.out);
  round.recv_bytes = plan(form.recv, form.recv_on, round.in);
  return round;
}

}  // namespace dtrun::comm

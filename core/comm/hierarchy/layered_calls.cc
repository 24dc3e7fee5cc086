#include "core/comm/hierarchy/layered_calls.h"

#include <algorithm>

#include "core/comm/operation.h"
#include "sdk/algorithms/reducer.h"

namespace dtrun::comm {

LayeredCalls::LayeredCalls(const Topology& topology, Layer& local, Layer* wire)
    : topology_(topology), local_(local), wire_(wire), size_(topology.host_of.size()) {
  for (const std::vector<int>& ranks : topology.members)
    packed_.insert(packed_.end(), ranks.begin(), ranks.end());
}

LayeredCalls::~LayeredCalls() {
  if (scratch_ != nullptr) local_.Free(scratch_);
}

void LayeredCalls::Run(shm::Running& running) {
  switch (running.op->kind) {
    case DTRUN_ALLREDUCE: return Allreduce(running);
    case DTRUN_REDUCE: return Reduce(running);
    case DTRUN_BROADCAST: return Broadcast(running);
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV: return ReduceScatter(running);
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV: return Allgather(running);
    case DTRUN_BARRIER: return Barrier(running);
    default: return Exchange(running);
  }
}

LayeredCalls::Round LayeredCalls::RoundOf(const sdk::Parts& parts, std::uint64_t at,
                                          std::uint64_t most) const {
  Round round;
  round.parts.resize(size_);
  for (const std::size_t rank : packed_) {
    const std::uint64_t size = parts[rank].size;
    round.parts[rank] = {round.total, size <= at ? 0 : std::min(most, size - at)};
    round.total += round.parts[rank].size;
  }
  return round;
}

std::vector<std::uint64_t> LayeredCalls::ByHost(const Round& round) const {
  std::vector<std::uint64_t> sums(topology_.members.size());
  for (std::size_t rank = 0; rank < size_; ++rank) {
    sums[static_cast<std::size_t>(topology_.host_of[rank])] += round.parts[rank].size;
  }
  return sums;
}

std::vector<std::uint64_t> LayeredCalls::OfMine(const Round& round) const {
  std::vector<std::uint64_t> counts;
  for (const int rank : topology_.Mine()) counts.push_back(round.parts[static_cast<std::size_t>(rank)].size);
  return counts;
}

std::uint64_t LayeredCalls::BeginOfMine(const Round& round) const {
  return round.parts[static_cast<std::size_t>(topology_.Mine().front())].begin;
}

dtrun_op LayeredCalls::StepOf(const dtrun_op& op, std::int32_t kind, std::uint64_t count) {
  dtrun_op step;
  DTRUN_INIT(step);
  step.flags = DTRUN_OP_BLOCKING;
  step.kind = kind;
  step.dtype = op.dtype;
  step.root = sdk::IsRooted(kind) ? 0 : -1;
  step.peer = -1;
  step.count = count;
  step.scale = op.scale;
  return step;
}

dtrun_op LayeredCalls::WireReduction(const dtrun_op& op, std::int32_t kind, std::uint64_t count) {
  dtrun_op step = StepOf(op, kind, count);
  const bool sums = op.reduce == DTRUN_AVG || op.reduce == DTRUN_PREMUL_SUM;
  step.reduce = sums ? std::int32_t{DTRUN_SUM} : op.reduce;
  return step;
}

dtrun_op LayeredCalls::LocalReduction(const dtrun_op& op, std::uint64_t count) {
  dtrun_op step = StepOf(op, DTRUN_REDUCE, count);
  step.reduce = op.reduce == DTRUN_AVG ? std::int32_t{DTRUN_SUM} : op.reduce;
  return step;
}

void LayeredCalls::Finish(const dtrun_op& op, void* data, std::uint64_t count) const {
  if (op.reduce != DTRUN_AVG) return;
  const int ranks = topology_.size();
  if (op.dtype != DTRUN_FLOAT16 && op.dtype != DTRUN_BFLOAT16) {
    return algorithms::Divide(data, count, op.dtype, ranks);
  }
  constexpr std::uint64_t kBlock = 1024;
  float wide[kBlock];
  for (std::uint64_t at = 0; at < count; at += kBlock) {
    const std::uint64_t some = std::min(kBlock, count - at);
    auto* const narrow = static_cast<std::uint16_t*>(data) + at;
    kernels::Widen(wide, narrow, some, op.dtype);
    algorithms::Divide(wide, some, DTRUN_FLOAT32, ranks);
    kernels::Narrow(narrow, wide, some, op.dtype);
  }
}

std::byte* LayeredCalls::Scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    if (scratch_ != nullptr) local_.Free(std::exchange(scratch_, nullptr));
    scratch_bytes_ = 0;
    dtrun_mem_params params;
    DTRUN_INIT(params);
    params.bytes = bytes;
    params.alignment = 64;
    params.device_index = -1;
    scratch_ = static_cast<std::byte*>(local_.Alloc(params));
    scratch_bytes_ = bytes;
  }
  return scratch_;
}

}  // namespace dtrun::comm

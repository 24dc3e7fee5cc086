#include "core/comm/shm/collective.h"

#include <cstring>

namespace dtrun::shm {
namespace {

bool Reduces(std::int32_t kind) {
  return kind == DTRUN_ALLREDUCE || kind == DTRUN_REDUCE || kind == DTRUN_REDUCE_SCATTER ||
         kind == DTRUN_REDUCE_SCATTERV;
}

bool HasRoot(std::int32_t kind) {
  return kind == DTRUN_BROADCAST || kind == DTRUN_REDUCE || kind == DTRUN_GATHER || kind == DTRUN_SCATTER ||
         kind == DTRUN_GATHERV || kind == DTRUN_SCATTERV;
}

// FNV-1a of the counts; never 0.
std::uint64_t Digest(const std::uint64_t* counts, int size) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < size; ++i) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((counts[i] >> shift) & 0xffu)) * 0x100000001b3u;
  }
  return hash | 1;
}

}  // namespace

Collectives::Collectives(Group& group)
    : group_(group),
      rank_(group.rank()),
      size_(group.size()),
      sources_(static_cast<std::size_t>(group.size())) {}

void Collectives::Run(Running& running) {
  switch (running.op->kind) {
    case DTRUN_BARRIER: return Enter(CallOf(*running.op), nullptr, 0, 0, running);
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE: return Reduction(running);
    case DTRUN_BROADCAST:
    case DTRUN_ALLGATHER:
    case DTRUN_ALLGATHERV:
    case DTRUN_GATHER:
    case DTRUN_GATHERV: return Shared(running);
    default: return Personal(running);
  }
}

Call Collectives::CallOf(const dtrun_op& op) const {
  Call call;
  call.kind = static_cast<std::uint8_t>(op.kind);
  if (op.kind == DTRUN_BARRIER) return call;
  call.dtype = static_cast<std::uint8_t>(op.dtype);
  if (Reduces(op.kind)) call.reduce = static_cast<std::uint8_t>(op.reduce);
  if (HasRoot(op.kind)) call.root = op.root;
  switch (op.kind) {
    case DTRUN_ALLGATHERV:
    case DTRUN_REDUCE_SCATTERV: call.shape = Digest(op.recv_counts, size_); break;
    case DTRUN_ALLTOALLV:
    case DTRUN_GATHERV:
    case DTRUN_SCATTERV: break;
    default: call.count = op.count;
  }
  return call;
}

Collectives::Combine Collectives::CombineOf(const dtrun_op& op) {
  if (!Reduces(op.kind)) return {};
  return {kernels::ReduceFor(op.dtype, op.reduce), op.dtype, op.reduce == DTRUN_PREMUL_SUM, op.scale};
}

void Collectives::Show(std::byte* to, const std::byte* from, std::size_t bytes, const Combine& combine) {
  if (bytes == 0) return;
  if (combine.scaled) {
    kernels::Scale(to, from, bytes / kernels::ElementBytes(combine.dtype), combine.dtype, combine.scale);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void Collectives::Enter(const Call& call, const void* payload, std::size_t bytes, std::uint32_t flags,
                        Running& running) {
  Post& post = group_.NextPost();
  if (bytes > 0) std::memcpy(post.payload, payload, bytes);
  post.flags = flags;
  group_.Enter(call);
  group_.AwaitEntries(running);
}

bool Collectives::AllHave(std::uint32_t flag) const {
  for (int rank = 0; rank < size_; ++rank) {
    if ((group_.PostOf(rank).flags & flag) == 0) return false;
  }
  return true;
}

bool Collectives::AnyHas(std::uint32_t flag) const {
  for (int rank = 0; rank < size_; ++rank) {
    if ((group_.PostOf(rank).flags & flag) != 0) return true;
  }
  return false;
}

}  // namespace dtrun::shm

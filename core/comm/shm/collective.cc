#include "core/comm/shm/collective.h"

#include <cstring>

namespace dtrun::shm {

Collectives::Collectives(Group& group)
    : group_(group),
      rank_(group.rank()),
      size_(group.size()),
      sources_(static_cast<std::size_t>(group.size())) {}

bool Collectives::Begin(const dtrun_op& op) {
  switch (op.kind) {
    case DTRUN_BARRIER: EnterBarrier(op); return true;
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE:
      if (!Small(op)) return false;
      EnterSmall(op);
      return true;
    default: return false;
  }
}

void Collectives::Run(Running& running) {
  switch (running.op->kind) {
    case DTRUN_BARRIER:
      if (!running.entered) EnterBarrier(*running.op);
      return group_.AwaitEntries(running);
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

Collectives::Combine Collectives::CombineOf(const dtrun_op& op) {
  if (!sdk::IsReduction(op.kind)) return {};
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

void Collectives::EnterBarrier(const dtrun_op& op) {
  (void)group_.Prepare(sdk::SignatureOf(op, size_));
  group_.Enter();
}

void Collectives::Enter(const sdk::Signature& call, const void* payload, std::size_t bytes,
                        std::uint32_t flags, Running& running) {
  Post& post = group_.Prepare(call);
  if (bytes > 0) std::memcpy(post.payload, payload, bytes);
  post.flags = flags;
  group_.Enter();
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

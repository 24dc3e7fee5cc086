// The shared-memory collectives that move operands, and reduce-scatter.

#include "core/comm/shm/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/comm/operation.h"

namespace dtrun::shm {
namespace {

constexpr std::uint32_t kDirectExchange = 1;    // flag of a Post: `place` is where the operand lies
constexpr std::size_t kDirectBytes = 64 << 10;  // below, finding the place costs more than it saves

// The payload of an entry.
struct Offer {
  std::uint64_t longest = 0;  // bytes that this rank gives to one other
  RegionRef place;
};
static_assert(sizeof(Offer) <= kPayloadBytes);

// Copies the rank's own part, unless it is in place.
void CopyOwn(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// How many bytes of [at, at + most) a buffer of `bytes` has.
std::size_t Left(std::size_t bytes, std::size_t at, std::size_t most) {
  return bytes <= at ? 0 : std::min(most, bytes - at);
}

}  // namespace

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

std::vector<Collectives::Take> Collectives::TakesOf(const dtrun_op& op, const sdk::Parts& parts) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  std::vector<Take> takes(parts.size());
  for (std::size_t rank = 0; rank < takes.size(); ++rank) {
    takes[rank] = {static_cast<std::byte*>(op.recv) + parts[rank].begin * width, parts[rank].size * width};
  }
  return takes;
}

void Collectives::Shared(Running& running) {
  const dtrun_op& op = *running.op;
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const auto me = static_cast<std::size_t>(rank_);
  std::vector<Take> takes;
  sdk::Parts parts;
  Give own;
  if (op.kind == DTRUN_BROADCAST) {
    takes.resize(sources_.size());
    const Take all{static_cast<std::byte*>(op.recv), op.count * width};
    if (Root(op)) {
      own = {all.data, all.bytes};
    } else {
      takes[static_cast<std::size_t>(op.root)] = all;
    }
  } else {
    parts = sdk::RecvParts(op, rank_, size_);
    takes = TakesOf(op, parts);
    const bool all = !sdk::IsRooted(op.kind);
    const std::uint64_t mine = op.kind == DTRUN_ALLGATHERV ? op.recv_counts[me] : op.count;
    own = {static_cast<const std::byte*>(op.send), mine * width};
    if (all || Root(op)) {
      CopyOwn(takes[me].data, own.data, std::min(own.bytes, takes[me].bytes));
      takes[me].bytes = 0;
      if (!all) own.bytes = 0;  // no other rank needs the root's
    }
    if (op.kind == DTRUN_GATHERV) ShowCounts(sdk::SendParts(op, rank_, size_));
  }

  Offer offer{own.bytes, {}};
  bool direct = own.bytes == 0;
  if (own.bytes >= kDirectBytes) {
    if (const auto place = FindRegion(own.data, own.bytes)) {
      offer.place = *place;
      direct = true;
    }
  }
  const std::uint32_t turn = group_.NextTurn();
  const std::size_t piece = group_.layout().stage_bytes;
  if (!direct) std::memcpy(Stage(rank_, turn), own.data, std::min(own.bytes, piece));
  Enter(sdk::SignatureOf(op, size_), &offer, sizeof offer, direct ? kDirectExchange : 0, running);
  if (op.kind == DTRUN_GATHERV) CheckCounts(op, parts);
  if (AllHave(kDirectExchange)) return ShareDirect(takes, running);
  const auto [longest, hoped] = Offered();
  if (hoped) {
    if (direct && own.bytes > 0) std::memcpy(Stage(rank_, turn), own.data, std::min(own.bytes, piece));
    StepTogether(running);
  }
  ShareStaged(own, takes, longest, turn, running);
}

Collectives::Offers Collectives::Offered() const {
  Offers all;
  for (int rank = 0; rank < size_; ++rank) {
    const Post& post = group_.PostOf(rank);
    Offer offer;
    std::memcpy(&offer, post.payload, sizeof offer);
    all.hoped = all.hoped || (offer.longest > 0 && (post.flags & kDirectExchange) != 0);
    all.longest = std::max<std::size_t>(all.longest, offer.longest);
  }
  return all;
}

// The first piece is staged already.
void Collectives::ShareStaged(const Give& own, const std::vector<Take>& takes, std::size_t longest,
                              std::uint32_t turn, Running& running) {
  const std::size_t piece = group_.layout().stage_bytes;
  for (std::size_t at = 0; at < longest; at += piece) {
    if (at > 0) {
      turn = group_.NextTurn();
      const std::size_t bytes = Left(own.bytes, at, piece);
      if (bytes > 0) std::memcpy(Stage(rank_, turn), own.data + at, bytes);
      StepTogether(running);
    }
    for (std::size_t rank = 0; rank < takes.size(); ++rank) {
      const std::size_t bytes = Left(takes[rank].bytes, at, piece);
      if (bytes > 0) std::memcpy(takes[rank].data + at, Stage(static_cast<int>(rank), turn), bytes);
    }
  }
}

void Collectives::ShareDirect(const std::vector<Take>& takes, Running& running) {
  for (std::size_t rank = 0; rank < takes.size(); ++rank) {
    if (takes[rank].bytes == 0) continue;
    const int peer = static_cast<int>(rank);
    Offer offer;
    std::memcpy(&offer, group_.PostOf(peer).payload, sizeof offer);
    const std::byte* const from =
        peers_.Resolve(peer, group_.rank_of(peer).pid.load(), offer.place, takes[rank].bytes);
    kernels::StreamingCopy(takes[rank].data, from, takes[rank].bytes);
  }
  kernels::Fence();
  StepTogether(running);
}

// The part for this rank has the same offset in every send buffer that has one.
void Collectives::PersonalDirect(const dtrun_op& op, const std::vector<Take>& takes, std::size_t begin,
                                 Running& running) {
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const auto part_of = [&](int rank) -> const std::byte* {
    if (rank == rank_) return static_cast<const std::byte*>(op.send) + begin;
    Offer offer;
    std::memcpy(&offer, group_.PostOf(rank).payload, sizeof offer);
    const std::size_t end = begin + takes[static_cast<std::size_t>(rank)].bytes;
    return peers_.Resolve(rank, group_.rank_of(rank).pid.load(), offer.place, end) + begin;
  };
  if (sdk::IsReduction(op.kind)) {
    const Take& take = takes[static_cast<std::size_t>(rank_)];
    for (int rank = 0; rank < size_ && take.bytes > 0; ++rank) {
      sources_[static_cast<std::size_t>(rank)] = part_of(rank);
    }
    const kernels::Reduce reduce = kernels::ReduceFor(op.dtype, op.reduce, kernels::Stores::kStreaming);
    reduce(take.data, sources_.data(), size_, take.bytes / width);
  } else {
    for (std::size_t rank = 0; rank < takes.size(); ++rank) {
      if (takes[rank].bytes == 0) continue;
      kernels::StreamingCopy(takes[rank].data, part_of(static_cast<int>(rank)), takes[rank].bytes);
    }
  }
  kernels::Fence();
  StepTogether(running);
}

void Collectives::Personal(Running& running) {
  const dtrun_op& op = *running.op;
  const Combine combine = CombineOf(op);
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const auto* const send = static_cast<const std::byte*>(op.send);
  const auto me = static_cast<std::size_t>(rank_);
  const sdk::Parts given = sdk::SendParts(op, rank_, size_), taken = sdk::RecvParts(op, rank_, size_);
  std::vector<Give> gives(given.size());
  for (std::size_t rank = 0; rank < gives.size(); ++rank) {
    gives[rank] = {send + given[rank].begin * width, given[rank].size * width};
  }
  std::vector<Take> takes = TakesOf(op, taken);
  if (combine.kernel == nullptr && takes[me].bytes > 0) {
    CopyOwn(takes[me].data, gives[me].data, std::min(takes[me].bytes, gives[me].bytes));
    takes[me].bytes = 0;
  }
  // For kinds where only the giver knows the places of its parts.
  const bool known = op.kind != DTRUN_ALLTOALLV && op.kind != DTRUN_SCATTERV;
  if (!known) ShowCounts(given);

  const std::size_t share = SharePerRank();
  const auto show = [&](std::size_t at, std::uint32_t turn) {
    for (std::size_t rank = 0; rank < gives.size(); ++rank) {
      const std::size_t bytes = rank == me ? 0 : Left(gives[rank].bytes, at, share);
      if (bytes > 0) Show(Stage(rank_, turn) + rank * share, gives[rank].data + at, bytes, combine);
    }
  };
  Offer offer;
  for (const Give& give : gives) offer.longest = std::max<std::uint64_t>(offer.longest, give.bytes);
  // Parts at unknown places go through the stages, and so does a part that is replaced while others read it.
  bool direct = known && offer.longest == 0;
  if (known && offer.longest >= kDirectBytes && !combine.scaled &&
      (op.kind != DTRUN_ALLTOALL || op.send != op.recv)) {
    const Give& last = gives.back();
    if (const auto place = FindRegion(send, static_cast<std::size_t>(last.data + last.bytes - send))) {
      offer.place = *place;
      direct = true;
    }
  }
  std::uint32_t turn = group_.NextTurn();
  if (!direct) show(0, turn);
  Enter(sdk::SignatureOf(op, size_), &offer, sizeof offer, direct ? kDirectExchange : 0, running);
  if (!known) CheckCounts(op, taken);
  if (AllHave(kDirectExchange)) {
    const bool gave = op.kind != DTRUN_SCATTER || Root(op);
    const std::size_t begin = gave ? static_cast<std::size_t>(gives[me].data - send) : op.count * width * me;
    return PersonalDirect(op, takes, begin, running);
  }
  const auto [longest, hoped] = Offered();
  if (hoped) {
    if (direct) show(0, turn);
    StepTogether(running);
  }
  for (std::size_t at = 0; at < longest; at += share) {
    if (at > 0) {
      turn = group_.NextTurn();
      show(at, turn);
      StepTogether(running);
    }
    if (combine.kernel != nullptr) {
      CombineParts(op, gives[me], takes[me], at, turn, combine);
      continue;
    }
    for (std::size_t rank = 0; rank < takes.size(); ++rank) {
      const std::size_t bytes = Left(takes[rank].bytes, at, share);
      if (bytes > 0)
        std::memcpy(takes[rank].data + at, Stage(static_cast<int>(rank), turn) + me * share, bytes);
    }
  }
}

void Collectives::CombineParts(const dtrun_op& op, const Give& own, const Take& take, std::size_t offset,
                               std::uint32_t turn, const Combine& combine) {
  const std::size_t share = SharePerRank();
  const std::size_t bytes = Left(take.bytes, offset, share);
  if (bytes == 0) return;
  const std::byte* mine = own.data + offset;
  if (combine.scaled) {
    Show(Result(rank_, turn), mine, bytes, combine);
    mine = Result(rank_, turn);
  }
  for (int rank = 0; rank < size_; ++rank) {
    sources_[static_cast<std::size_t>(rank)] =
        rank == rank_ ? mine : Stage(rank, turn) + static_cast<std::size_t>(rank_) * share;
  }
  combine.kernel(take.data + offset, sources_.data(), size_, bytes / kernels::ElementBytes(op.dtype));
}

void Collectives::ShowCounts(const sdk::Parts& given) {
  auto* const row =
      reinterpret_cast<std::uint64_t*>(group_.at(group_.layout().counts_at(rank_, group_.call_number() + 1)));
  for (std::size_t rank = 0; rank < given.size(); ++rank) row[rank] = given[rank].size;
}

void Collectives::CheckCounts(const dtrun_op& op, const sdk::Parts& taken) {
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint64_t expected = taken[static_cast<std::size_t>(rank)].size;
    const auto* const row = reinterpret_cast<const std::uint64_t*>(
        group_.at(group_.layout().counts_at(rank, group_.call_number())));
    if (row[rank_] == expected) continue;
    group_.Fail(
        sdk::Failure(DTRUN_MISMATCH,
                     fmt::format("call {} on '{}' differs: in {}, rank {} expects {} elements of rank {}, "
                                 "which gives {}",
                                 group_.call_number(), group_.name(), sdk::OperationName(op.kind), rank_,
                                 expected, rank, row[rank_]),
                     rank));
  }
}

}  // namespace dtrun::shm

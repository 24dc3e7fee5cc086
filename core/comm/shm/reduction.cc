// allreduce and reduce over shared memory.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/comm/shm/collective.h"

namespace dtrun::shm {
namespace {

// Up to here every rank reads all operands and combines all of them: one synchronisation instead of two.
constexpr std::size_t kSmallBytes = 32 << 10;
// From here results bypass the cache: no rank would find them there anyway.
constexpr std::size_t kStreamingBytes = 1 << 20;
// Bytes combined at a time; the next block's loads overlap with this one's stores.
constexpr std::size_t kBlockBytes = 2 << 10;

constexpr std::uint32_t kDirect = 1;  // flag of a Post: its payload is where the operands lie

struct Operands {
  RegionRef send;
  RegionRef recv;
};
static_assert(sizeof(Operands) <= kPayloadBytes);

std::size_t Width(const dtrun_op& op) { return kernels::ElementBytes(op.dtype); }
const std::byte* Send(const dtrun_op& op) { return static_cast<const std::byte*>(op.send); }
std::byte* Recv(const dtrun_op& op) { return static_cast<std::byte*>(op.recv); }
// Whether `rank` gets the result.
bool Wanted(const dtrun_op& op, int rank) { return op.kind != DTRUN_REDUCE || rank == op.root; }

}  // namespace

bool Collectives::Small(const dtrun_op& op) { return op.count * Width(op) <= kSmallBytes; }

void Collectives::Reduction(Running& running) {
  if (Small(*running.op)) return SmallReduction(running);
  LargeReduction(running, CombineOf(*running.op));
}

void Collectives::EnterSmall(const dtrun_op& op) {
  const std::size_t bytes = op.count * Width(op);
  Post& post = group_.Prepare(sdk::SignatureOf(op, size_));
  std::byte* const place = bytes <= kPayloadBytes ? post.payload : Stage(rank_, group_.NextTurn());
  Show(place, Send(op), bytes, CombineOf(op));
  group_.Enter();
}

void Collectives::SmallReduction(Running& running) {
  const dtrun_op& op = *running.op;
  if (!running.entered) EnterSmall(op);
  group_.AwaitEntries(running);
  if (!Wanted(op, rank_)) return;
  const Combine combine = CombineOf(op);
  const bool tiny = op.count * Width(op) <= kPayloadBytes;
  for (int rank = 0; rank < size_; ++rank) {
    const std::byte* const shown = tiny ? group_.PostOf(rank).payload : Stage(rank, group_.turn());
    sources_[static_cast<std::size_t>(rank)] = rank == rank_ && !combine.scaled ? Send(op) : shown;
  }
  combine.kernel(op.recv, sources_.data(), size_, op.count);
}

void Collectives::LargeReduction(Running& running, const Combine& combine) {
  const dtrun_op& op = *running.op;
  const std::size_t bytes = op.count * Width(op);
  Operands operands;
  bool direct = false;
  const bool wanted = Wanted(op, rank_);
  if (!combine.scaled) {
    const auto send = FindRegion(op.send, bytes);
    const auto recv = send && wanted ? FindRegion(op.recv, bytes) : std::nullopt;
    direct = send && (recv || !wanted);
    if (direct) operands = {*send, recv.value_or(RegionRef{})};
  }
  Piece first{0, std::min<std::size_t>(op.count, group_.layout().stage_bytes / Width(op)), group_.NextTurn()};
  if (!direct) ShowPiece(op, first, combine);
  Enter(sdk::SignatureOf(op, size_), &operands, sizeof operands, direct ? kDirect : 0, running);
  if (AllHave(kDirect)) return DirectReduction(running, combine);
  if (AnyHas(kDirect)) {
    if (direct) ShowPiece(op, first, combine);
    StepTogether(running);
  }
  if (size_ == 2) return PairReduction(running, combine, first);
  StagedReduction(running, combine, first);
}

// Stages this rank's part of the piece for all others; it reads its own part in place. With two ranks, each
// combines everything.
void Collectives::ShowPiece(const dtrun_op& op, const Piece& piece, const Combine& combine) const {
  const std::size_t width = Width(op);
  if (size_ == 2) {
    return Show(Stage(rank_, piece.turn), Send(op) + piece.begin * width, piece.count * width, combine);
  }
  const sdk::Part own = sdk::EvenPart(piece.count, size_, rank_);
  const std::byte* const from = Send(op) + piece.begin * width;
  std::byte* const to = Stage(rank_, piece.turn);
  const std::size_t end = own.begin + own.size;
  Show(to, from, own.begin * width, combine);
  Show(to + end * width, from + end * width, (piece.count - end) * width, combine);
}

void Collectives::CombinePiece(const dtrun_op& op, const Piece& piece, const Combine& combine) {
  const std::size_t width = Width(op);
  const sdk::Part own = sdk::EvenPart(piece.count, size_, rank_);
  if (own.size == 0) return;
  const std::byte* mine = Send(op) + (piece.begin + own.begin) * width;
  std::byte* const result = Result(rank_, piece.turn);
  if (combine.scaled) {
    Show(result, mine, own.size * width, combine);
    mine = result;
  }
  for (int rank = 0; rank < size_; ++rank) {
    sources_[static_cast<std::size_t>(rank)] =
        rank == rank_ ? mine : Stage(rank, piece.turn) + own.begin * width;
  }
  combine.kernel(result, sources_.data(), size_, own.size);
}

void Collectives::TakeResults(const dtrun_op& op, const Piece& piece) const {
  if (!Wanted(op, rank_)) return;
  const std::size_t width = Width(op);
  const bool streaming = op.count * width >= kStreamingBytes;
  for (int rank = 0; rank < size_; ++rank) {
    const sdk::Part part = sdk::EvenPart(piece.count, size_, rank);
    if (part.size == 0) continue;
    std::byte* const to = Recv(op) + (piece.begin + part.begin) * width;
    if (streaming) {
      kernels::StreamingCopy(to, Result(rank, piece.turn), part.size * width);
    } else {
      std::memcpy(to, Result(rank, piece.turn), part.size * width);
    }
  }
  if (streaming) kernels::Fence();
}

void Collectives::StagedReduction(Running& running, const Combine& combine, Piece first) {
  const dtrun_op& op = *running.op;
  Piece piece = first;
  for (;;) {
    CombinePiece(op, piece, combine);
    group_.Step();
    const std::uint32_t combined = group_.step();
    const std::size_t next = piece.begin + piece.count;
    if (next == op.count) {
      group_.AwaitStep(combined, running);
      return TakeResults(op, piece);
    }
    const Piece following{next, std::min(first.count, op.count - next), group_.NextTurn()};
    ShowPiece(op, following, combine);
    group_.Step();
    const std::uint32_t shown = group_.step();
    group_.AwaitStep(combined, running);
    TakeResults(op, piece);
    group_.AwaitStep(shown, running);
    piece = following;
  }
}

// Each rank shows everything and combines everything. It writes the next piece that it shows over the one it
// has just read from the other, line by line (kernels::Trade). So a line crosses between the two caches once;
// separate stages would move the line there and its ownership back again.
void Collectives::PairReduction(Running& running, const Combine& combine, Piece piece) {
  const dtrun_op& op = *running.op;
  const std::size_t width = Width(op);
  const std::size_t most = piece.count;
  const bool wanted = Wanted(op, rank_);
  const auto stores =
      op.count * width >= kStreamingBytes ? kernels::Stores::kStreaming : kernels::Stores::kCached;
  const kernels::Reduce reduce = kernels::ReduceFor(op.dtype, op.reduce, stores);
  const kernels::Trade trade = kernels::TradeFor(op.dtype, op.reduce, stores);
  std::byte* theirs = Stage(1 - rank_, piece.turn);
  std::byte* mine = Stage(rank_, piece.turn);
  const auto sources = [&](const std::byte* own, std::size_t at) {
    sources_[static_cast<std::size_t>(rank_)] = own;
    sources_[static_cast<std::size_t>(1 - rank_)] = theirs + at * width;
    return sources_.data();
  };
  alignas(kLine) std::byte scaled[kBlockBytes];
  while (piece.count > 0) {
    const std::size_t next = piece.begin + piece.count;
    const Piece following{next, std::min(most, op.count - next), piece.turn};
    const std::byte* const own = Send(op) + piece.begin * width;
    const std::byte* const coming = Send(op) + next * width;
    std::byte* const to = Recv(op) + piece.begin * width;
    if (!wanted) {
      Show(theirs, coming, following.count * width, combine);
    } else if (combine.scaled) {
      const std::size_t block = kBlockBytes / width;
      for (std::size_t at = 0; at < piece.count; at += block) {
        const std::size_t count = std::min(block, piece.count - at);
        Show(scaled, own + at * width, count * width, combine);
        reduce(to + at * width, sources(scaled, at), 2, count);
        const std::size_t show = at < following.count ? std::min(block, following.count - at) : 0;
        Show(theirs + at * width, coming + at * width, show * width, combine);
      }
    } else {
      const std::size_t both = following.count;
      trade(to, sources(own, 0), theirs, coming, both);
      reduce(to + both * width, sources(own + both * width, both), 2, piece.count - both);
    }
    if (following.count > 0) StepTogether(running);
    std::swap(mine, theirs);
    piece = following;
  }
  if (stores == kernels::Stores::kStreaming) kernels::Fence();
}

void Collectives::DirectReduction(Running& running, const Combine& combine) {
  const dtrun_op& op = *running.op;
  const std::size_t width = Width(op);
  const std::size_t bytes = op.count * width;
  std::vector<const std::byte*> sends;
  std::vector<std::byte*> recvs;
  for (int rank = 0; rank < size_; ++rank) {
    Operands operands;
    std::memcpy(&operands, group_.PostOf(rank).payload, sizeof operands);
    const pid_t pid = group_.rank_of(rank).pid.load();
    sends.push_back(rank == rank_ ? Send(op) : peers_.Resolve(rank, pid, operands.send, bytes));
    if (!Wanted(op, rank)) continue;
    recvs.push_back(rank == rank_ ? Recv(op) : peers_.Resolve(rank, pid, operands.recv, bytes));
  }
  const sdk::Part own = sdk::EvenPart(op.count, size_, rank_);
  const bool streaming = op.count * width >= kStreamingBytes;
  alignas(kLine) std::byte block[kBlockBytes];
  for (std::size_t done = 0; done < own.size;) {
    const std::size_t count = std::min(own.size - done, kBlockBytes / width);
    const std::size_t at = (own.begin + done) * width;
    for (std::size_t rank = 0; rank < sources_.size(); ++rank) sources_[rank] = sends[rank] + at;
    combine.kernel(block, sources_.data(), size_, count);
    for (std::byte* const recv : recvs) {
      if (streaming) {
        kernels::StreamingCopy(recv + at, block, count * width);
      } else {
        std::memcpy(recv + at, block, count * width);
      }
    }
    done += count;
  }
  if (streaming) kernels::Fence();
  StepTogether(running);
}

}  // namespace dtrun::shm

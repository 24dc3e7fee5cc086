// Operations that combine elements.
//
// A sum of 16-bit floats must be rounded once. Short ones travel as float32; of long ones every
// rank gets one part of all ranks, sums it and gives it to the others, which moves half as much.
// What is scaled before it is summed must not change the caller's buffer. So these go through a
// piece of scratch memory that stays in the processor's cache.
#include <algorithm>
#include <cstring>

#include "collective.h"
#include "dtrun/kernels.hpp"

namespace dtrun::mpi_plugin {
namespace {

// Elements.
constexpr std::uint64_t kPiece = 128 << 10;  // of float32 at a time
constexpr std::uint64_t kSplit = 2 << 10;    // of 16 bits, from which on parts are faster
constexpr std::uint64_t kRound = 1 << 20;    // of 16 bits at a time

// What becomes of elements on their way to MPI and back.
class Passage {
 public:
  Passage(const dtrun_op& op, const Reduction& how, int size)
      : dtype_(op.dtype),
        width_(kernels::ElementBytes(op.dtype)),
        wide_(how.widen),
        before_(op.reduce == DTRUN_PREMUL_SUM ? op.scale : 1.0),
        after_(op.reduce == DTRUN_AVG ? 1.0 / size : 1.0),
        prepares_(how.widen || op.reduce == DTRUN_PREMUL_SUM) {}

  // Whether elements must be prepared in memory of ours; alike on all ranks.
  bool prepares() const { return prepares_; }
  // Bytes of one element in that memory.
  std::size_t width() const { return wide_ ? sizeof(float) : width_; }

  void Prepare(void* out, const void* in, std::uint64_t count) const {
    if (wide_) {
      kernels::Widen(static_cast<float*>(out), in, count, dtype_);
      if (before_ != 1.0) kernels::Scale(out, out, count, DTRUN_FLOAT32, before_);
    } else if (before_ != 1.0) {
      kernels::Scale(out, in, count, dtype_, before_);
    } else if (count > 0 && out != in) {
      std::memmove(out, in, count * width_);
    }
  }
  // `in` is scratch, and may change.
  void Finish(void* out, void* in, std::uint64_t count) const {
    if (wide_) {
      if (after_ != 1.0) kernels::Scale(in, in, count, DTRUN_FLOAT32, after_);
      kernels::Narrow(out, static_cast<const float*>(in), count, dtype_);
      return;
    }
    if (count > 0 && out != in) std::memcpy(out, in, count * width_);
    if (after_ != 1.0) kernels::Scale(out, out, count, dtype_, after_);
  }

 private:
  const std::int32_t dtype_;
  const std::size_t width_;
  const bool wide_;
  const double before_;
  const double after_;
  const bool prepares_;
};

}  // namespace

// Elements of 16 bits in each part; the rest is left to the caller. Rounds, so that what is
// exchanged stays in the cache. Returns how many elements are done.
std::uint64_t Collectives::AllreduceParts(const dtrun_op& op) {
  const auto ranks = static_cast<std::uint64_t>(team_.size());
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const MPI_Datatype type = team_.world().combiners().Mover(width);
  const kernels::Reduce reduce = kernels::ReduceFor(op.dtype, op.reduce);
  std::vector<const void*> sources(ranks);
  std::uint64_t done = 0;
  while (op.count - done >= kSplit) {
    const std::uint64_t part = std::min<std::uint64_t>({op.count - done, kRound, limit_}) / ranks;
    if (part == 0) break;
    void* const parts = scratch_.Get(part * ranks * width);
    void* const recv = At(op.recv, done, width);
    const int count = static_cast<int>(part);
    api().MPI_Alltoall(At(op.send, done, width), count, type, parts, count, type, comm());
    for (std::uint64_t rank = 0; rank < ranks; ++rank) sources[rank] = At(parts, rank * part, width);
    reduce(At(recv, part * static_cast<std::uint64_t>(team_.rank()), width), sources.data(), team_.size(),
           part);
    api().MPI_Allgather(MPI_IN_PLACE, count, type, recv, count, type, comm());
    done += part * ranks;
  }
  return done;
}

// Allreduce and reduce. Who receives can prepare what it sends in the place of the result, unless that is
// wider.
void Collectives::Reduce(const dtrun_op& op) {
  const Reduction how = team_.world().combiners().Find(op.dtype, op.reduce);
  const Passage passage(op, how, team_.size());
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const bool all = op.kind == DTRUN_ALLREDUCE;
  const bool receives = all || op.root == team_.rank();
  const std::uint64_t most = std::min((all ? how.widen : passage.prepares()) ? kPiece : limit_, limit_);
  const bool split = all && how.widen && op.reduce != DTRUN_PREMUL_SUM;
  const MPI_Comm comm = CommFor(op.count * width);
  for (std::uint64_t done = split ? AllreduceParts(op) : 0; done < op.count; done += most) {
    const std::uint64_t count = std::min(most, op.count - done);
    const void* send = At(op.send, done, width);
    void* const recv = receives ? At(op.recv, done, width) : nullptr;
    void* out = recv;
    if (passage.prepares()) {
      if (how.widen || !receives) out = scratch_.Get(count * passage.width());
      passage.Prepare(out, send, count);
      send = out;
    }
    if (receives && send == out) send = MPI_IN_PLACE;
    const int number = static_cast<int>(count);
    if (all) {
      api().MPI_Allreduce(send, out, number, how.type, how.op, comm);
    } else {
      api().MPI_Reduce(send, receives ? out : nullptr, number, how.type, how.op, op.root, comm);
    }
    if (receives) passage.Finish(recv, out, count);
  }
}

// Each round takes the same number of elements of every part, as far as it has them. All ranks
// know all counts, so all make the same rounds; whether they pack is their own affair.
void Collectives::ReduceScatter(const dtrun_op& op) {
  const auto ranks = static_cast<std::size_t>(team_.size());
  const auto own = static_cast<std::size_t>(team_.rank());
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const Reduction how = team_.world().combiners().Find(op.dtype, op.reduce);
  const Passage passage(op, how, team_.size());
  const sdk::Parts parts = sdk::SendParts(op, team_.rank(), team_.size());
  const std::uint64_t longest = sdk::LongestOf(parts);
  const bool at_once = !passage.prepares() && sdk::SizeOf(parts) <= limit_;
  const std::uint64_t most =
      at_once ? longest
              : std::max<std::uint64_t>(1, (passage.prepares() ? std::min(kPiece, limit_) : limit_) / ranks);
  const char* const recv_end = At(op.recv, parts[own].size, width);
  const bool in_place =
      op.recv < At(op.send, sdk::EndOf(parts), width) && recv_end > static_cast<const char*>(op.send);

  for (std::uint64_t done = 0; done < longest; done += most) {
    std::vector<int> counts;
    std::uint64_t total = 0;
    for (const sdk::Part& part : parts) {
      counts.push_back(static_cast<int>(part.size > done ? std::min(most, part.size - done) : 0));
      total += static_cast<std::uint64_t>(counts.back());
    }
    const void* send = op.send;
    if (!at_once) {
      void* const packed = scratch_.Get(total * passage.width());
      std::uint64_t next = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto count = static_cast<std::uint64_t>(counts[rank]);
        passage.Prepare(At(packed, next, passage.width()), At(op.send, parts[rank].begin + done, width),
                        count);
        next += count;
      }
      send = packed;
    }
    const auto mine = static_cast<std::uint64_t>(counts[own]);
    void* const recv = At(op.recv, done, width);
    void* const out = how.widen || in_place || mine == 0 ? result_.Get(mine * passage.width()) : recv;
    api().MPI_Reduce_scatter(send, out, counts.data(), how.type, how.op, comm());
    passage.Finish(recv, out, mine);
  }
}

}  // namespace dtrun::mpi_plugin

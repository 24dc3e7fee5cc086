// Allreduce and reduce-scatter: rank r combines part r of all ranks.
//
// Part r is cut into segments. While one segment is combined the next is on its way, and
// an allreduce sends a combined segment back at once.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "collective.h"
#include "transfer.h"

namespace dtrun::gloo_plugin {
namespace {

// Bytes in flight from one peer before they are combined: two segments.
constexpr std::size_t kSegmentBytes = 256 << 10;
constexpr std::size_t kWindow = 2;
// Up to here every rank sends its whole vector to every other: one step instead of two.
constexpr std::size_t kSmallTotal = 64 << 10;

// Elements [begin, begin + size) of a vector.
struct Part {
  std::size_t begin = 0;
  std::size_t size = 0;
};

// Part `rank` of `count` elements cut as evenly as possible.
Part EvenPart(std::size_t count, int ranks, int rank) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t each = count / n;
  const std::size_t more = count % n;
  return {r * each + std::min(r, more), each + (r < more ? 1 : 0)};
}

template <class Visit>
void ForEachPeer(const Mesh& mesh, Visit&& visit) {
  // Starting behind this rank, so that not all ranks turn to rank 0 first.
  for (int step = 1; step < mesh.size(); ++step) visit((mesh.rank() + step) % mesh.size());
}

// A vector of which each rank combines one part.
class PartwiseReduction {
 public:
  // Part p of `send` holds parts[p]; the combined part of this rank goes to `out`.
  PartwiseReduction(Mesh& mesh, Operation& operation, const CollectiveCall& call, ReduceKernel kernel,
                    std::vector<Part> parts, void* out)
      : mesh_(mesh), operation_(operation), call_(call), kernel_(kernel), parts_(std::move(parts)) {
    out_ = static_cast<std::byte*>(out);
    segment_ = std::max<std::size_t>(1, kSegmentBytes / call.width);
    peers_.resize(static_cast<std::size_t>(mesh.size()));
  }

  // `gather`: afterwards every rank has every part, in call.recv.
  void Run(bool gather) {
    Post(gather);
    Combine(gather);
    for (Peer& peer : peers_) {
      if (peer.give) peer.give->FinishSends(operation_);
      if (peer.spread) peer.spread->FinishSends(operation_);
      if (peer.collect) peer.collect->FinishRecvs(operation_);
    }
  }

 private:
  struct Peer {
    std::unique_ptr<std::byte[]> scratch;  // outlives the transfer into it
    std::unique_ptr<Transfer> give;        // this rank's share of the peer's part
    std::unique_ptr<Transfer> take;        // the peer's share of this rank's part
    std::unique_ptr<Transfer> spread;      // this rank's part, combined
    std::unique_ptr<Transfer> collect;     // the peer's part, combined
  };

  const Part& Mine() const { return parts_[static_cast<std::size_t>(mesh_.rank())]; }
  std::size_t Segments(const Part& part) const { return (part.size + segment_ - 1) / segment_; }
  // Bytes of a segment, and its place in the part.
  std::size_t Bytes(const Part& part, std::size_t index) const {
    return std::min(segment_, part.size - index * segment_) * call_.width;
  }
  std::size_t Offset(std::size_t index) const { return index * segment_ * call_.width; }
  const std::byte* SendPart(const Part& part) const {
    return static_cast<const std::byte*>(call_.send) + part.begin * call_.width;
  }

  void PostTake(Peer& peer, std::size_t index) {
    const std::size_t place = index % kWindow * segment_ * call_.width;
    peer.take->Recv(call_.slot, place, Bytes(Mine(), index));
  }

  void Post(bool gather) {
    const std::size_t window = std::min(kWindow, Segments(Mine()));
    const std::size_t scratch = std::min(window * segment_, Mine().size) * call_.width;
    ForEachPeer(mesh_, [&](int rank) {
      Peer& peer = peers_[static_cast<std::size_t>(rank)];
      const Part& theirs = parts_[static_cast<std::size_t>(rank)];
      peer.scratch = std::make_unique_for_overwrite<std::byte[]>(scratch);
      peer.take = std::make_unique<Transfer>(mesh_, rank, peer.scratch.get(), scratch);
      for (std::size_t i = 0; i < window; ++i) PostTake(peer, i);
      if (gather) {
        auto* const recv = static_cast<std::byte*>(call_.recv) + theirs.begin * call_.width;
        peer.collect = std::make_unique<Transfer>(mesh_, rank, recv, theirs.size * call_.width);
        peer.spread = std::make_unique<Transfer>(mesh_, rank, out_, Mine().size * call_.width);
        for (std::size_t i = 0; i < Segments(theirs); ++i) {
          peer.collect->Recv(call_.slot + 1, Offset(i), Bytes(theirs, i));
        }
      }
      peer.give = std::make_unique<Transfer>(mesh_, rank, SendPart(theirs), theirs.size * call_.width);
      for (std::size_t i = 0; i < Segments(theirs); ++i)
        peer.give->Send(call_.slot, Offset(i), Bytes(theirs, i));
    });
  }

  void Combine(bool gather) {
    std::vector<const void*> sources(peers_.size());
    for (std::size_t i = 0; i < Segments(Mine()); ++i) {
      const std::size_t place = i % kWindow * segment_ * call_.width;
      for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
        Peer& peer = peers_[rank];
        sources[rank] = peer.take ? peer.scratch.get() + place : SendPart(Mine()) + Offset(i);
        if (peer.take) peer.take->WaitRecv(operation_);
      }
      kernel_(out_ + Offset(i), sources.data(), mesh_.size(), Bytes(Mine(), i) / call_.width);
      ForEachPeer(mesh_, [&](int rank) {
        Peer& peer = peers_[static_cast<std::size_t>(rank)];
        if (i + kWindow < Segments(Mine())) PostTake(peer, i + kWindow);
        if (gather) peer.spread->Send(call_.slot + 1, Offset(i), Bytes(Mine(), i));
      });
    }
  }

  Mesh& mesh_;
  Operation& operation_;
  const CollectiveCall& call_;
  const ReduceKernel kernel_;
  const std::vector<Part> parts_;
  std::byte* out_;
  std::size_t segment_;  // elements
  std::vector<Peer> peers_;
};

// Everybody gets everything and combines it all.
void SmallAllreduce(Mesh& mesh, Operation& operation, const CollectiveCall& call, ReduceKernel kernel) {
  const std::size_t bytes = call.count * call.width;
  const auto ranks = static_cast<std::size_t>(mesh.size());
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(bytes * ranks);
  std::deque<Transfer> gives;
  std::deque<Transfer> takes;
  ForEachPeer(mesh, [&](int rank) {
    std::byte* const place = scratch.get() + static_cast<std::size_t>(rank) * bytes;
    takes.emplace_back(mesh, rank, place, bytes).Recv(call.slot, 0, bytes);
    gives.emplace_back(mesh, rank, call.send, bytes).Send(call.slot, 0, bytes);
  });
  for (Transfer& take : takes) take.FinishRecvs(operation);
  // In place, the result overwrites what is being sent.
  for (Transfer& give : gives) give.FinishSends(operation);
  std::vector<const void*> sources(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) sources[rank] = scratch.get() + rank * bytes;
  sources[static_cast<std::size_t>(mesh.rank())] = call.send;
  kernel(call.recv, sources.data(), mesh.size(), call.count);
}

}  // namespace

void Allreduce(Mesh& mesh, Operation& operation, const CollectiveCall& call, ReduceKernel kernel) {
  if (mesh.size() == 1) return kernel(call.recv, &call.send, 1, call.count);
  if (call.count * call.width * static_cast<std::size_t>(mesh.size()) <= kSmallTotal) {
    return SmallAllreduce(mesh, operation, call, kernel);
  }
  std::vector<Part> parts;
  for (int rank = 0; rank < mesh.size(); ++rank) parts.push_back(EvenPart(call.count, mesh.size(), rank));
  const std::size_t mine = parts[static_cast<std::size_t>(mesh.rank())].begin * call.width;
  PartwiseReduction(mesh, operation, call, kernel, std::move(parts),
                    static_cast<std::byte*>(call.recv) + mine)
      .Run(true);
}

void ReduceScatter(Mesh& mesh, Operation& operation, const CollectiveCall& call, ReduceKernel kernel) {
  if (mesh.size() == 1) return kernel(call.recv, &call.send, 1, call.count);
  std::vector<Part> parts;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    parts.push_back({static_cast<std::size_t>(rank) * call.count, call.count});
  }
  PartwiseReduction(mesh, operation, call, kernel, std::move(parts), call.recv).Run(false);
}

}  // namespace dtrun::gloo_plugin

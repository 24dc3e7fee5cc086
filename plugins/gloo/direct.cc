#include "direct.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "dtrun/kernels.hpp"
#include "dtrun/plugin/op.hpp"
#include "transfer.h"

namespace dtrun::gloo_plugin {
namespace {

// Of all ranks' vectors together: smaller reductions take fewer messages by dtrun::algorithms.
constexpr std::size_t kLargeTotal = 128 << 10;

// Bytes in flight from one peer before they are combined: two segments.
constexpr std::size_t kReduceSegmentBytes = 256 << 10;
constexpr std::size_t kWindow = 2;

struct Direct {
  const dtrun_op& op;
  const std::uint64_t slot;
  const std::size_t width;  // bytes of an element
};

template <class Visit>
void ForEachPeer(const Mesh& mesh, Visit&& visit) {
  // Starting behind this rank, so that not all ranks turn to rank 0 first.
  for (int step = 1; step < mesh.size(); ++step) visit((mesh.rank() + step) % mesh.size());
}

// Who gets a part when it has been combined, besides the rank that did.
struct Receivers {
  bool all = false;
  int one = -1;

  bool Has(int rank) const { return all || rank == one; }
};

// A vector of which each rank combines one part.
class PartwiseReduction {
 public:
  // Part p of `send` holds parts[p]; the combined part of this rank goes to `out`.
  PartwiseReduction(Mesh& mesh, Operation& operation, const Direct& call, const void* send, sdk::Parts parts,
                    std::byte* out)
      : mesh_(mesh),
        operation_(operation),
        call_(call),
        send_(send),
        parts_(std::move(parts)),
        kernel_(kernels::ReduceFor(call.op.dtype, call.op.reduce)),
        out_(out),
        segment_(std::max<std::size_t>(1, kReduceSegmentBytes / call.width)),
        peers_(static_cast<std::size_t>(mesh.size())) {}

  // Afterwards `receivers` have every part, in call.recv.
  void Run(Receivers receivers) {
    Post(receivers);
    Combine();
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

  const sdk::Part& Mine() const { return parts_[static_cast<std::size_t>(mesh_.rank())]; }
  std::size_t Segments(const sdk::Part& part) const { return (part.size + segment_ - 1) / segment_; }
  // Bytes of a segment, and its place in the part.
  std::size_t Bytes(const sdk::Part& part, std::size_t index) const {
    return std::min(segment_, part.size - index * segment_) * call_.width;
  }
  std::size_t Offset(std::size_t index) const { return index * segment_ * call_.width; }
  const std::byte* SendPart(const sdk::Part& part) const {
    return static_cast<const std::byte*>(send_) + part.begin * call_.width;
  }

  void PostTake(Peer& peer, std::size_t index) {
    const std::size_t place = index % kWindow * segment_ * call_.width;
    peer.take->Recv(call_.slot, place, Bytes(Mine(), index));
  }

  void Post(Receivers receivers) {
    const std::size_t window = std::min(kWindow, Segments(Mine()));
    const std::size_t scratch = std::min(window * segment_, Mine().size) * call_.width;
    ForEachPeer(mesh_, [&](int rank) {
      Peer& peer = peers_[static_cast<std::size_t>(rank)];
      const sdk::Part& theirs = parts_[static_cast<std::size_t>(rank)];
      peer.scratch = std::make_unique_for_overwrite<std::byte[]>(scratch);
      peer.take = std::make_unique<Transfer>(mesh_, rank, peer.scratch.get(), scratch);
      for (std::size_t i = 0; i < window; ++i) PostTake(peer, i);
      if (receivers.Has(mesh_.rank())) {
        auto* const recv = static_cast<std::byte*>(call_.op.recv) + theirs.begin * call_.width;
        peer.collect = std::make_unique<Transfer>(mesh_, rank, recv, theirs.size * call_.width);
        for (std::size_t i = 0; i < Segments(theirs); ++i) {
          peer.collect->Recv(call_.slot + 1, Offset(i), Bytes(theirs, i));
        }
      }
      if (receivers.Has(rank)) {
        peer.spread = std::make_unique<Transfer>(mesh_, rank, out_, Mine().size * call_.width);
      }
      peer.give = std::make_unique<Transfer>(mesh_, rank, SendPart(theirs), theirs.size * call_.width);
      for (std::size_t i = 0; i < Segments(theirs); ++i)
        peer.give->Send(call_.slot, Offset(i), Bytes(theirs, i));
    });
  }

  void Combine() {
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
        if (peer.spread) peer.spread->Send(call_.slot + 1, Offset(i), Bytes(Mine(), i));
      });
    }
  }

  Mesh& mesh_;
  Operation& operation_;
  const Direct& call_;
  const void* const send_;
  const sdk::Parts parts_;
  const kernels::Reduce kernel_;
  std::byte* const out_;
  const std::size_t segment_;  // elements
  std::vector<Peer> peers_;
};

// This rank's elements, multiplied where the reduction wants that.
class Scaled {
 public:
  Scaled(const Direct& call, std::size_t count) : data_(call.op.send) {
    if (call.op.reduce != DTRUN_PREMUL_SUM) return;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(count * call.width);
    kernels::Scale(memory_.get(), data_, count, call.op.dtype, call.op.scale);
    data_ = memory_.get();
  }
  const void* data() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  const void* data_;
};

void Exchange(Mesh& mesh, Operation& operation, const Direct& call) {
  const dtrun_op& op = call.op;
  const sdk::Parts sends = sdk::InBytes(sdk::SendParts(op, mesh.rank(), mesh.size()), call.width);
  const sdk::Parts recvs = sdk::InBytes(sdk::RecvParts(op, mesh.rank(), mesh.size()), call.width);
  const auto* send = static_cast<const std::byte*>(op.send);
  auto* const recv = static_cast<std::byte*>(op.recv);
  std::unique_ptr<std::byte[]> copy;
  // Parts that arrive in place would overwrite those that have not left yet.
  if ((op.kind == DTRUN_ALLTOALL || op.kind == DTRUN_ALLTOALLV) && send == recv) {
    const std::size_t extent = sdk::EndOf(sends);
    copy = std::make_unique_for_overwrite<std::byte[]>(extent);
    if (extent > 0) std::memcpy(copy.get(), send, extent);
    send = copy.get();
  }
  std::deque<Transfer> gives;
  std::deque<Transfer> takes;
  for (int step = 1; step < mesh.size(); ++step) {
    const int from = (mesh.rank() + step) % mesh.size();
    if (const sdk::Part& range = recvs[static_cast<std::size_t>(from)]; range.size > 0) {
      takes.emplace_back(mesh, from, recv + range.begin, range.size)
          .Recv(SlotOf(call.slot, range.size), 0, range.size);
    }
    const int to = (mesh.rank() - step + mesh.size()) % mesh.size();
    if (const sdk::Part& range = sends[static_cast<std::size_t>(to)]; range.size > 0) {
      gives.emplace_back(mesh, to, send + range.begin, range.size)
          .Send(SlotOf(call.slot, range.size), 0, range.size);
    }
  }
  const sdk::Part& mine = sends[static_cast<std::size_t>(mesh.rank())];
  if (mine.size > 0) {
    std::byte* const place = recv + recvs[static_cast<std::size_t>(mesh.rank())].begin;
    if (place != send + mine.begin) std::memcpy(place, send + mine.begin, mine.size);
  }
  for (Transfer& take : takes) take.FinishRecvs(operation);
  for (Transfer& give : gives) give.FinishSends(operation);
}

// Allreduce, reduce and reduce_scatter differ in what the parts are, in who gets them combined, and in where
// a rank combines its own.
void Reduce(Mesh& mesh, Operation& operation, const Direct& call) {
  const dtrun_op& op = call.op;
  const bool scatters = op.kind != DTRUN_ALLREDUCE && op.kind != DTRUN_REDUCE;
  const Receivers receivers{op.kind == DTRUN_ALLREDUCE, op.kind == DTRUN_REDUCE ? op.root : -1};
  sdk::Parts parts =
      scatters ? sdk::SendParts(op, mesh.rank(), mesh.size()) : sdk::EvenParts(op.count, mesh.size());
  const Scaled send(call, sdk::SizeOf(parts));
  const sdk::Part mine = parts[static_cast<std::size_t>(mesh.rank())];
  auto* out = static_cast<std::byte*>(op.recv);
  std::unique_ptr<std::byte[]> scratch;
  if (!scatters && !receivers.Has(mesh.rank())) {
    scratch = std::make_unique_for_overwrite<std::byte[]>(mine.size * call.width);
    out = scratch.get();
  } else if (!scatters) {
    out += mine.begin * call.width;
  }
  PartwiseReduction(mesh, operation, call, send.data(), std::move(parts), out).Run(receivers);
}

}  // namespace

bool ServesDirectly(const dtrun_op& op, int ranks) {
  switch (op.kind) {
    case DTRUN_BARRIER:
    case DTRUN_BROADCAST: return false;
    case DTRUN_ALLREDUCE:
    case DTRUN_REDUCE:
      return op.count * kernels::ElementBytes(op.dtype) * static_cast<std::size_t>(ranks) > kLargeTotal;
    default: return true;
  }
}

void RunDirectly(Mesh& mesh, Operation& operation, const dtrun_op& op, std::uint64_t slot) {
  (sdk::IsReduction(op.kind) ? Reduce : Exchange)(mesh, operation,
                                                  {op, slot, kernels::ElementBytes(op.dtype)});
}

}  // namespace dtrun::gloo_plugin

// The collectives that only move bytes.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "collective.h"
#include "dtrun/algorithms.hpp"
#include "transfer.h"

namespace dtrun::gloo_plugin {
namespace {

constexpr std::size_t kSegmentBytes = 256 << 10;
// Up to here a broadcast walks down a tree; above, its parts are dealt out and exchanged.
constexpr std::size_t kTreeLimit = 64 << 10;

void TreeBroadcast(Mesh& mesh, Operation& operation, const CollectiveCall& call) {
  const int root = call.op->root;
  const std::size_t bytes = call.op->count * call.width;
  const int ranks = mesh.size();
  const int place = (mesh.rank() - root + ranks) % ranks;  // the root stands at place 0
  const auto rank_at = [&](int other) { return (other + root) % ranks; };
  int bit = 1;
  for (; bit < ranks; bit <<= 1) {
    if ((place & bit) == 0) continue;
    Transfer take(mesh, rank_at(place - bit), call.op->recv, bytes);
    take.Recv(call.slot, 0, bytes);
    take.FinishRecvs(operation);
    break;
  }
  std::deque<Transfer> gives;
  for (bit >>= 1; bit > 0; bit >>= 1) {
    if (place + bit < ranks)
      gives.emplace_back(mesh, rank_at(place + bit), call.op->recv, bytes).Send(call.slot, 0, bytes);
  }
  for (Transfer& give : gives) give.FinishSends(operation);
}

// The root deals one part to each other rank, and these pass their parts on to one another
// segment by segment: the root sends the vector once, however many ranks there are.
class DealtBroadcast {
 public:
  DealtBroadcast(Mesh& mesh, Operation& operation, const CollectiveCall& call)
      : mesh_(mesh),
        operation_(operation),
        call_(call),
        root_(call.op->root),
        bytes_(call.op->count * call.width) {}

  void Run() {
    mesh_.rank() == root_ ? Deal() : Exchange();
    for (Transfer& give : gives_) give.FinishSends(operation_);
    for (Transfer& take : takes_) take.FinishRecvs(operation_);
  }

 private:
  // Part of the rank, in bytes: owners are all ranks but the root, in order.
  std::size_t Begin(int rank) const {
    const auto owners = static_cast<std::size_t>(mesh_.size() - 1);
    const auto owner = static_cast<std::size_t>(rank - (rank > root_ ? 1 : 0));
    return bytes_ / owners * owner + std::min(owner, bytes_ % owners);
  }
  std::size_t Size(int rank) const {
    const auto owners = static_cast<std::size_t>(mesh_.size() - 1);
    const auto owner = static_cast<std::size_t>(rank - (rank > root_ ? 1 : 0));
    return bytes_ / owners + (owner < bytes_ % owners ? 1 : 0);
  }
  template <class Visit>
  void ForEachSegment(int owner, Visit&& visit) const {
    for (std::size_t at = 0; at < Size(owner); at += kSegmentBytes) {
      visit(at, std::min(kSegmentBytes, Size(owner) - at));
    }
  }
  std::byte* Part(int rank) const { return static_cast<std::byte*>(call_.op->recv) + Begin(rank); }

  void Deal() {
    for (int owner = 0; owner < mesh_.size(); ++owner) {
      if (owner == root_) continue;
      Transfer& give = gives_.emplace_back(mesh_, owner, Part(owner), Size(owner));
      ForEachSegment(owner, [&](std::size_t at, std::size_t size) { give.Send(call_.slot, at, size); });
    }
  }

  void Exchange() {
    const int me = mesh_.rank();
    Transfer mine(mesh_, root_, Part(me), Size(me));
    ForEachSegment(me, [&](std::size_t at, std::size_t size) { mine.Recv(call_.slot, at, size); });
    for (int owner = 0; owner < mesh_.size(); ++owner) {
      if (owner == root_ || owner == me) continue;
      Transfer& take = takes_.emplace_back(mesh_, owner, Part(owner), Size(owner));
      ForEachSegment(owner, [&](std::size_t at, std::size_t size) { take.Recv(call_.slot, at, size); });
      gives_.emplace_back(mesh_, owner, Part(me), Size(me));
    }
    ForEachSegment(me, [&](std::size_t at, std::size_t size) {
      mine.WaitRecv(operation_);
      for (Transfer& give : gives_) give.Send(call_.slot, at, size);
    });
  }

  Mesh& mesh_;
  Operation& operation_;
  const CollectiveCall& call_;
  const int root_;
  const std::size_t bytes_;
  std::deque<Transfer> gives_;
  std::deque<Transfer> takes_;
};

}  // namespace

void Exchange(Mesh& mesh, Operation& operation, const CollectiveCall& call) {
  const dtrun_op& op = *call.op;
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
          .Recv(call.SlotOf(range.size), 0, range.size);
    }
    const int to = (mesh.rank() - step + mesh.size()) % mesh.size();
    if (const sdk::Part& range = sends[static_cast<std::size_t>(to)]; range.size > 0) {
      gives.emplace_back(mesh, to, send + range.begin, range.size)
          .Send(call.SlotOf(range.size), 0, range.size);
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

void Broadcast(Mesh& mesh, Operation& operation, const CollectiveCall& call) {
  if (call.op->count * call.width <= kTreeLimit || mesh.size() == 2)
    return TreeBroadcast(mesh, operation, call);
  DealtBroadcast(mesh, operation, call).Run();
}

void DisseminationBarrier(Mesh& mesh, Operation& operation, std::uint64_t slot) {
  for (int distance = 1; distance < mesh.size(); distance <<= 1) {
    Transfer take(mesh, (mesh.rank() - distance + mesh.size()) % mesh.size(), nullptr, 0);
    Transfer give(mesh, (mesh.rank() + distance) % mesh.size(), nullptr, 0);
    take.Recv(slot, 0, 0);
    give.Send(slot, 0, 0);
    take.FinishRecvs(operation);
    give.FinishSends(operation);
  }
}

void RunCollective(Mesh& mesh, Operation& operation, const CollectiveCall& call) {
  if (mesh.size() == 1) return algorithms::RunAlone(*call.op);
  switch (call.op->kind) {
    case DTRUN_ALLREDUCE: return Allreduce(mesh, operation, call);
    case DTRUN_REDUCE: return Reduce(mesh, operation, call);
    case DTRUN_REDUCE_SCATTER:
    case DTRUN_REDUCE_SCATTERV: return ReduceScatter(mesh, operation, call);
    case DTRUN_BROADCAST: return Broadcast(mesh, operation, call);
    case DTRUN_BARRIER: return DisseminationBarrier(mesh, operation, call.slot);
    default: return Exchange(mesh, operation, call);
  }
}

}  // namespace dtrun::gloo_plugin

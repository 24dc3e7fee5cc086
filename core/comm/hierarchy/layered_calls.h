// The collectives over two layers: a step inside each host, one between the leaders, one back.
//
// allreduce and broadcast run in chunks: while one is on the wire, the next is combined (or spread) inside
// the host. Each host sends as much as in an allreduce among the leaders, 2S(h-1)/h for a ring. The others
// run in rounds that fit into a scratch buffer. Its parts are in packed order: by host, then by place in the
// host. Belongs to the thread that runs calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/comm/hierarchy/layer.h"
#include "core/comm/hierarchy/topology.h"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {

// The most that a round moves at a time.
inline constexpr std::size_t kScratchBytes = 4 << 20;

// Element `element` of a buffer with elements of `width` bytes; buffers of the user that are only read are
// const.
inline std::byte* At(const void* data, std::uint64_t element, std::uint64_t width) {
  return const_cast<std::byte*>(static_cast<const std::byte*>(data)) + element * width;
}

class LayeredCalls {
 public:
  // `wire` joins the leaders and is null on other ranks.
  LayeredCalls(const Topology& topology, Layer& local, Layer* wire);
  ~LayeredCalls();
  LayeredCalls(const LayeredCalls&) = delete;
  LayeredCalls& operator=(const LayeredCalls&) = delete;

  // Any collective. Throws sdk::Failure; the communicator has ended then.
  void Run(shm::Running& running);

 private:
  // The elements of every rank's part that a round moves, at their place in packed order.
  struct Round {
    sdk::Parts parts;
    std::uint64_t total = 0;
  };

  // ---- reductions and broadcast: layered_reduction.cc ----
  void Allreduce(shm::Running& running);
  void Reduce(shm::Running& running);
  void Broadcast(shm::Running& running);
  void ReduceScatter(shm::Running& running);

  // ---- the rest: layered_calls.cc ----
  void Barrier(shm::Running& running);
  void Allgather(shm::Running& running);
  // gather(v), scatter(v), alltoall(v): every rank gives a part to each and takes one of each.
  void Exchange(shm::Running& running);
  // On the leader: `row` of all ranks of this host, by place, then rank.
  std::vector<std::uint64_t> GatherRows(std::vector<std::uint64_t> row, shm::Running& running);
  std::uint64_t MostOfAll(std::uint64_t value, shm::Running& running);

  // Elements [at, at + most) of each part, packed.
  Round RoundOf(const sdk::Parts& parts, std::uint64_t at, std::uint64_t most) const;
  // Copies those elements from `data`, a buffer with `parts`, to `packed`; with `back`, to `data`.
  void Pack(const Round& round, const sdk::Parts& parts, std::uint64_t at, std::uint64_t width,
            const void* data, std::byte* packed, bool back = false) const;
  // Sums of `round` per host; for this host, per place.
  std::vector<std::uint64_t> ByHost(const Round& round) const;
  std::vector<std::uint64_t> OfMine(const Round& round) const;
  std::uint64_t BeginOfMine(const Round& round) const;

  // An operation for a layer with type, reduction and scale of `op`.
  static dtrun_op StepOf(const dtrun_op& op, std::int32_t kind, std::uint64_t count);
  // The same for steps after the first combination.
  static dtrun_op WireReduction(const dtrun_op& op, std::int32_t kind, std::uint64_t count);
  static dtrun_op LocalReduction(const dtrun_op& op, std::uint64_t count);
  // The last step of an average.
  void Finish(const dtrun_op& op, void* data, std::uint64_t count) const;

  bool Leads() const { return wire_ != nullptr; }
  bool RootIsHere(const dtrun_op& op) const { return topology_.HostOf(op.root) == topology_.host(); }
  std::byte* Scratch(std::size_t bytes);

  const Topology& topology_;
  Layer& local_;
  Layer* const wire_;
  const std::size_t size_;
  std::vector<std::size_t> packed_;  // ranks in packed order
  std::byte* scratch_ = nullptr;     // from the local layer, which moves it fastest
  std::size_t scratch_bytes_ = 0;
};

}  // namespace dtrun::comm

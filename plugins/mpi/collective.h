// Collectives as calls of MPI, cut to the counts that MPI takes.
//
// One per communicator, used by one thread at a time, after all ranks have reached the call.
// Blocks until MPI has done its part; throws what MPI reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dtrun/plugin/op.hpp"
#include "library.h"
#include "team.h"

namespace dtrun::mpi_plugin {

using sdk::At;

// Memory that grows and is kept.
class Scratch {
 public:
  // At least `bytes`, aligned to a cache line; what it held is lost.
  void* Get(std::size_t bytes);

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t bytes_ = 0;
};

class Collectives {
 public:
  // `limit`: the largest count given to one call of MPI.
  Collectives(Team& team, std::uint64_t limit) : team_(team), limit_(limit) {}

  void Run(const dtrun_op& op);

 private:
  // reduce.cc
  std::uint64_t AllreduceParts(const dtrun_op& op);
  void Reduce(const dtrun_op& op);
  void ReduceScatter(const dtrun_op& op);

  // collective.cc
  void Broadcast(const dtrun_op& op);
  void Allgather(const dtrun_op& op);
  void Alltoall(const dtrun_op& op);
  void Gather(const dtrun_op& op);
  void Scatter(const dtrun_op& op);
  void Allgatherv(const dtrun_op& op);
  void ExchangeParts(const dtrun_op& op);
  BigType Elements(std::int32_t dtype, std::uint64_t count) const;
  // Whether `own` is this rank's block in `all`.
  bool IsOwnBlock(const dtrun_op& op, const void* own, const void* all) const;

  const Api& api() const { return team_.api(); }
  MPI_Comm comm() const { return team_.handles().main; }
  // For what Open MPI's coll/sm does as well: allreduce, reduce, broadcast.
  MPI_Comm CommFor(std::uint64_t bytes) const { return bytes < kBulk ? comm() : team_.handles().bulk; }

  // Below it coll/tuned won, or it was close, on the processors we measured (tools/bench/history.md).
  static constexpr std::uint64_t kBulk = std::uint64_t{32} << 20;

  Team& team_;
  const std::uint64_t limit_;
  Scratch scratch_;  // what is packed, scaled, widened or saved
  Scratch result_;   // what cannot be received in its place
};

}  // namespace dtrun::mpi_plugin

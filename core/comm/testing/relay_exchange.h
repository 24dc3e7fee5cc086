// Every collective as messages between pairs of ranks, for the relay backend.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dtrun/abi/op.h"

namespace dtrun::comm::testing {

// Elements of a buffer that go to, or come from, one rank.
struct Part {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};
using Parts = std::vector<std::optional<Part>>;  // by rank; none: no message

inline Parts One(int size, int rank, Part part) {
  Parts parts(static_cast<std::size_t>(size));
  parts[static_cast<std::size_t>(rank)] = part;
  return parts;
}

inline Parts All(int size, Part part) { return Parts(static_cast<std::size_t>(size), part); }

inline Parts Even(int size, std::uint64_t count) {
  Parts parts;
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(size); ++r)
    parts.push_back(Part{r * count, count});
  return parts;
}

inline Parts Listed(int size, const std::uint64_t* counts, const std::uint64_t* offsets) {
  Parts parts;
  std::uint64_t behind = 0;
  for (int r = 0; r < size; ++r) {
    parts.push_back(Part{offsets == nullptr ? behind : offsets[r], counts[r]});
    behind += counts[r];
  }
  return parts;
}

// A collective as messages: what this rank gives to each rank and takes from each.
struct Exchange {
  Parts give, take;
  bool reduces = false;  // what is taken combines in recv
};

inline Exchange ExchangeOf(const dtrun_op& op, int rank, int size) {
  const bool root = op.root == rank;
  const Part whole{0, op.count};
  const Parts none(static_cast<std::size_t>(size));
  const auto mine = [&] { return Part{0, op.recv_counts[rank]}; };
  switch (op.kind) {
    case DTRUN_ALLREDUCE: return {All(size, whole), All(size, whole), true};
    case DTRUN_REDUCE: return {One(size, op.root, whole), root ? All(size, whole) : none, root};
    case DTRUN_BROADCAST: return {root ? All(size, whole) : none, root ? none : One(size, op.root, whole)};
    case DTRUN_ALLGATHER: return {All(size, whole), Even(size, op.count)};
    case DTRUN_ALLGATHERV: return {All(size, mine()), Listed(size, op.recv_counts, op.recv_offsets)};
    case DTRUN_REDUCE_SCATTER: return {Even(size, op.count), All(size, whole), true};
    case DTRUN_REDUCE_SCATTERV: return {Listed(size, op.recv_counts, nullptr), All(size, mine()), true};
    case DTRUN_ALLTOALL: return {Even(size, op.count), Even(size, op.count)};
    case DTRUN_ALLTOALLV:
      return {Listed(size, op.send_counts, op.send_offsets), Listed(size, op.recv_counts, op.recv_offsets)};
    case DTRUN_GATHER: return {One(size, op.root, whole), root ? Even(size, op.count) : none};
    case DTRUN_GATHERV:
      return {One(size, op.root, whole), root ? Listed(size, op.recv_counts, op.recv_offsets) : none};
    case DTRUN_SCATTER: return {root ? Even(size, op.count) : none, One(size, op.root, whole)};
    case DTRUN_SCATTERV:
      return {root ? Listed(size, op.send_counts, op.send_offsets) : none, One(size, op.root, whole)};
    default: return {All(size, {}), All(size, {})};  // a barrier
  }
}

}  // namespace dtrun::comm::testing

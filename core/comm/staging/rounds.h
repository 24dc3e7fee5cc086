// How an operation is cut into rounds, each small enough for a piece of host memory.
//
// A round is an operation of the same kind on a part of the elements, in packed buffers, and the copies that
// fill and empty those. All ranks cut alike: the cut depends on kind, counts and number of ranks only.
// Operations with a count for every rank, and receives from any rank, are one round each, because a rank does
// not know the others' counts, or the sender. Values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {

// A contiguous copy between a buffer of the operation and the packed one, in bytes.
struct StagedCopy {
  std::uint64_t device = 0;  // offset in the operation's buffer
  std::uint64_t host = 0;    // offset in the packed one
  std::uint64_t bytes = 0;
};

struct Round {
  std::uint64_t count = 0;  // of the round's operation
  std::vector<StagedCopy> out, in;
  std::uint64_t send_bytes = 0;  // of the packed buffers; 0: none
  std::uint64_t recv_bytes = 0;
  bool in_place = false;  // one packed buffer serves both
};

class Rounds {
 public:
  // `op` outlives it. `most_bytes`: of a packed buffer, if the operation can be cut.
  Rounds(const dtrun_op& op, int rank, int size, std::uint64_t most_bytes);

  std::uint64_t size() const { return rounds_; }
  Round At(std::uint64_t index) const;

 private:
  Round Whole() const;

  const dtrun_op& op_;
  const int rank_, size_;
  const std::uint64_t width_;
  std::uint64_t each_ = 0;    // elements of a part in one round; 0: not cut
  std::uint64_t rounds_ = 1;  // a barrier has one, too
};

}  // namespace dtrun::comm

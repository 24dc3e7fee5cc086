// Which samples a rank sees: one permutation of the data set per epoch, the same on every
// rank, dealt out like cards.
//
// Position p of the permutation goes to rank p % ranks. So any run of a global batch's
// length is split evenly, and ranks that each take batch / ranks samples train together on
// exactly the samples that one rank would have taken. When the size does not divide, the
// permutation starts again at its head, so that all ranks get equally many.
//
// Knows nothing of torch. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/torch/failure.h"

namespace dtrun::torch {

struct SamplerOptions {
  std::uint64_t seed = 0;  // equal on all ranks
  bool shuffle = true;     // false: in order, the same every epoch
};

class Sampler {
 public:
  Sampler(std::uint64_t dataset_size, int rank, int ranks, SamplerOptions options = {})
      : options_(options),
        rank_(static_cast<std::uint64_t>(rank)),
        ranks_(static_cast<std::uint64_t>(ranks)) {
    if (dataset_size == 0) detail::fail(DTRUN_INVALID_ARGUMENT, "the data set is empty; nothing to sample");
    if (ranks < 1 || rank < 0 || rank >= ranks) {
      detail::fail(DTRUN_INVALID_ARGUMENT, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                                               " does not exist; pass the communicator's rank and size");
    }
    order_.resize(dataset_size);
    set_epoch(0);
  }

  // Starts an epoch at its first sample. Equal on all ranks.
  void set_epoch(std::uint64_t epoch) { resume(epoch, 0); }

  // Goes to where `epoch()` and `position()` once were, also with another number of ranks
  // as long as that divides the position.
  void resume(std::uint64_t epoch, std::uint64_t position) {
    if (position % ranks_ != 0 || position > samples_per_rank() * ranks_) {
      detail::fail(DTRUN_INVALID_ARGUMENT,
                   "cannot resume at sample " + std::to_string(position) + " with " + std::to_string(ranks_) +
                       " ranks and " + std::to_string(order_.size()) +
                       " samples; the position must be a multiple of the ranks and within the epoch");
    }
    epoch_ = epoch;
    taken_ = position / ranks_;
    shuffle();
  }

  std::uint64_t epoch() const { return epoch_; }
  // Samples that all ranks together have taken in this epoch.
  std::uint64_t position() const { return taken_ * ranks_; }
  std::uint64_t samples_per_rank() const { return (order_.size() + ranks_ - 1) / ranks_; }

  // This rank's next samples: `count`, fewer at the end of the epoch, then none.
  std::vector<std::int64_t> next(std::uint64_t count) {
    std::vector<std::int64_t> samples;
    for (; samples.size() < count && taken_ < samples_per_rank(); ++taken_) {
      samples.push_back(order_[(taken_ * ranks_ + rank_) % order_.size()]);
    }
    return samples;
  }

 private:
  // SplitMix64 and Fisher-Yates by hand: the standard library's shuffle may differ between
  // two hosts of one job.
  void shuffle() {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
    if (!options_.shuffle) return;
    std::uint64_t state = mix(options_.seed) ^ mix(~epoch_);
    for (std::uint64_t i = order_.size() - 1; i > 0; --i) {
      state += 0x9E3779B97F4A7C15ULL;
      std::swap(order_[i], order_[below(mix(state), i + 1)]);
    }
  }
  static std::uint64_t mix(std::uint64_t z) {
    z += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // Maps 64 random bits to [0, bound); the bias is below bound / 2^32.
  static std::uint64_t below(std::uint64_t bits, std::uint64_t bound) {
    return bound <= 0xFFFFFFFFULL ? ((bits >> 32) * bound) >> 32 : bits % bound;
  }

  SamplerOptions options_;
  std::uint64_t rank_;
  std::uint64_t ranks_;
  std::uint64_t epoch_ = 0;
  std::uint64_t taken_ = 0;
  std::vector<std::int64_t> order_;
};

}  // namespace dtrun::torch

#include <algorithm>
#include <numeric>
#include <utility>

#include "dtrun/algorithms.hpp"

namespace dtrun::algorithms {
namespace {

// As much as a large allreduce needs; memory beyond it is returned to the system at once.
constexpr std::size_t kKeptBytes = 4 << 20;

}  // namespace

ScratchPool::Block ScratchPool::Take(std::size_t bytes) {
  kept_.reserve(kept_.size() + ++given_out_);  // so that Give, which runs during unwinding, cannot fail
  const auto fits = [&](const Block& block) { return block.bytes >= bytes; };
  auto best = kept_.end();
  for (auto block = kept_.begin(); block != kept_.end(); ++block) {
    if (fits(*block) && (best == kept_.end() || block->bytes < best->bytes)) best = block;
  }
  if (best == kept_.end()) return {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  Block taken = std::move(*best);
  kept_.erase(best);
  return taken;
}

void ScratchPool::Give(Block block) {
  --given_out_;
  if (block.bytes > kKeptBytes) return;
  kept_.push_back(std::move(block));
  while (bytes() > kKeptBytes) kept_.erase(kept_.begin());
}

std::size_t ScratchPool::bytes() const {
  return std::accumulate(kept_.begin(), kept_.end(), std::size_t{0},
                         [](std::size_t sum, const Block& block) { return sum + block.bytes; });
}

}  // namespace dtrun::algorithms

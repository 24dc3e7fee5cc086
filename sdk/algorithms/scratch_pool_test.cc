#include <gtest/gtest.h>

#include <utility>

#include "dtrun/algorithms.hpp"

namespace dtrun::algorithms {
namespace {

// Takes blocks of these sizes, all before the first is returned.
void Use(ScratchPool& pool, const std::vector<std::size_t>& sizes) {
  std::vector<ScratchPool::Block> blocks;
  for (const std::size_t bytes : sizes) blocks.push_back(pool.Take(bytes));
  for (ScratchPool::Block& block : blocks) pool.Give(std::move(block));
}

TEST(ScratchPool, GivesOutAgainWhatItWasGiven) {
  ScratchPool pool;
  ScratchPool::Block block = pool.Take(1000);
  const std::byte* const memory = block.memory.get();
  pool.Give(std::move(block));
  EXPECT_EQ(pool.bytes(), 1000u);
  EXPECT_EQ(pool.Take(900).memory.get(), memory);
  EXPECT_EQ(pool.bytes(), 0u);
}

TEST(ScratchPool, GivesTheSmallestBlockThatIsLargeEnough) {
  ScratchPool pool;
  Use(pool, {3000, 1000, 2000});
  EXPECT_EQ(pool.Take(1500).bytes, 2000u);
  EXPECT_EQ(pool.Take(4000).bytes, 4000u);
  EXPECT_EQ(pool.bytes(), 4000u);  // 3000 and 1000
}

TEST(ScratchPool, KeepsTheLastFourMebibytes) {
  constexpr std::size_t kMebibyte = 1 << 20;
  ScratchPool pool;
  Use(pool, std::vector<std::size_t>(6, kMebibyte));
  EXPECT_EQ(pool.bytes(), 4 * kMebibyte);
  Use(pool, {8 * kMebibyte});
  EXPECT_EQ(pool.bytes(), 4 * kMebibyte);
}

}  // namespace
}  // namespace dtrun::algorithms

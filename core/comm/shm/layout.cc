#include "core/comm/shm/layout.h"

#include <algorithm>

namespace dtrun::shm {
namespace {

constexpr std::size_t kPage = 4096;
// Both turns of all ranks' stages should fit into the caches that the ranks share.
constexpr std::size_t kStageTotal = 1 << 20;

std::size_t PageUp(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

Layout::Layout(int rank_count) : size(static_cast<std::size_t>(rank_count)) {
  stage_bytes = std::clamp<std::size_t>(kStageTotal / 2 / size / kPage * kPage, 64 << 10, 256 << 10);
  result_bytes = PageUp(stage_bytes / size + kLine);
  channel_bytes = size <= 16 ? 128 << 10 : 32 << 10;
  ranks = PageUp(sizeof(FailureRecord));
  counts = PageUp(ranks + size * sizeof(Rank));
  stages = PageUp(counts + size * 2 * size * sizeof(std::uint64_t));
  results = stages + size * 2 * stage_bytes;
  channels = results + size * 2 * result_bytes;
  total = channels + size * size * channel_bytes;
}

}  // namespace dtrun::shm

#include "core/comm/staging/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace dtrun::comm {
namespace {

constexpr std::uint64_t kSmallest = 64 << 10;
// Pieces kept for their next use. The piece of an operation with a count for every rank is freed at once if
// it is larger than any cut piece.
constexpr std::size_t kKept = 16;
constexpr std::uint64_t kLargestKept = 8 << 20;

}  // namespace

Piece::~Piece() {
  if (memory() != nullptr) pool_->Give(piece_);
}

PiecePool::~PiecePool() {
  for (const HostPiece& piece : free_) Return(piece);
}

Piece PiecePool::Take(std::uint64_t bytes) {
  if (bytes == 0) return {};
  const auto fits =
      std::find_if(free_.begin(), free_.end(), [&](const HostPiece& free) { return free.bytes >= bytes; });
  if (fits != free_.end()) {
    const HostPiece piece = *fits;
    free_.erase(fits);
    return {*this, piece};
  }
  const std::uint64_t rounded =
      std::max(kSmallest, bytes > kLargestKept ? (bytes + 4095) / 4096 * 4096 : std::bit_ceil(bytes));
  if (!short_of_pinned_) {
    if (void* const memory = device_.AllocateHost(rounded); memory != nullptr)
      return {*this, {memory, rounded, true}};
    short_of_pinned_ = true;
  }
  if (void* const memory = std::aligned_alloc(4096, rounded); memory != nullptr)
    return {*this, {memory, rounded, false}};
  throw sdk::Failure(
      DTRUN_OUT_OF_MEMORY,
      fmt::format("'{}' has no memory of the host for {} bytes to stage, neither pinned nor ordinary; "
                  "use smaller operations, or a backend that moves device memory",
                  name_, bytes));
}

std::uint64_t PiecePool::Affordable(std::uint64_t most) {
  for (std::uint64_t bytes = most; bytes >= kSmallest; bytes /= 2) {
    void* const out = device_.AllocateHost(bytes);
    void* const in = out == nullptr ? nullptr : device_.AllocateHost(bytes);
    if (in != nullptr) {
      Give({out, bytes, true});
      Give({in, bytes, true});
      return bytes;
    }
    if (out != nullptr) device_.FreeHost(out, bytes);
  }
  short_of_pinned_ = true;
  return most;
}

void PiecePool::Give(const HostPiece& piece) {
  if (free_.size() < kKept && piece.bytes <= kLargestKept) {
    free_.push_back(piece);
  } else {
    Return(piece);
  }
}

void PiecePool::Return(const HostPiece& piece) {
  if (leak_) return;
  if (piece.pinned) {
    device_.FreeHost(piece.memory, piece.bytes);
  } else {
    std::free(piece.memory);
  }
}

}  // namespace dtrun::comm

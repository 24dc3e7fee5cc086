// Host memory for staging: reused, and pinned while there is enough of it.
//
// Owned by a communicator and used by its one thread. Copies must be done with a piece before it is returned.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/comm/staging/device_calls.h"

namespace dtrun::comm {

class PiecePool;

// Returns itself to its pool.
class Piece {
 public:
  Piece() = default;
  Piece(PiecePool& pool, void* memory, std::uint64_t bytes, bool pinned)
      : pool_(&pool), memory_(memory), bytes_(bytes), pinned_(pinned) {}
  Piece(Piece&& other) noexcept { *this = std::move(other); }
  Piece& operator=(Piece&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(pinned_, other.pinned_);
    return *this;
  }
  ~Piece();

  void* memory() const { return memory_; }
  std::uint64_t bytes() const { return bytes_; }
  bool pinned() const { return pinned_; }

 private:
  PiecePool* pool_ = nullptr;
  void* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
  bool pinned_ = false;
};

class PiecePool {
 public:
  // `name`: the communicator's, for messages.
  PiecePool(const DeviceCalls& device, std::string name) : device_(device), name_(std::move(name)) {}
  ~PiecePool();
  PiecePool(const PiecePool&) = delete;
  PiecePool& operator=(const PiecePool&) = delete;

  // At least `bytes`; for 0 the memory is null. Memory that cannot be pinned is pageable, and its copies may
  // block. Throws DTRUN_OUT_OF_MEMORY if there is neither.
  Piece Take(std::uint64_t bytes);
  // The largest size, `most` or a halving of it, for which one piece each way can be pinned; `most` if none
  // can.
  std::uint64_t Affordable(std::uint64_t most);
  // Frees nothing from now on: copies that never ended may still use it.
  void Leak() { leak_ = true; }
  // Whether pinned memory has run out.
  bool short_of_pinned() const { return short_of_pinned_; }

 private:
  friend class Piece;
  struct Free {
    void* memory;
    std::uint64_t bytes;
    bool pinned;
  };
  void Give(const Free& piece);
  void Return(const Free& piece);

  const DeviceCalls& device_;
  const std::string name_;
  std::vector<Free> free_;
  bool leak_ = false;
  bool short_of_pinned_ = false;
};

}  // namespace dtrun::comm

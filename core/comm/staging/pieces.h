// Host memory for staging: reused, and pinned while there is enough of it.
//
// Owned by a communicator and used by its one thread. Copies must be done with a piece before it is returned.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/comm/devices.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::comm {

// The device plugin's members that staging uses, as a class: failures are thrown, and created objects are
// owned.
//
// A view of a Device, which outlives it; any thread.
class DeviceCalls {
 public:
  DeviceCalls(const Device& device, int index)
      : table_(*device.table), self_(device.instance), index_(index) {}

  int index() const { return index_; }
  int kind() const { return table_.kind; }

  void Copy(void* to, const void* from, std::uint64_t bytes, const dtrun_stream& stream) const {
    sdk::Check([&](dtrun_error* e) { return table_.copy(self_, to, from, bytes, &stream, e); });
  }
  void Record(dtrun_event* event, const dtrun_stream& stream) const {
    sdk::Check([&](dtrun_error* e) { return table_.event_record(self_, event, &stream, e); });
  }
  bool Test(dtrun_event* event) const {
    bool reached = true;
    sdk::Check([&](dtrun_error* e) {
      const dtrun_status status = table_.event_test(self_, event, e);
      reached = status != DTRUN_PENDING;
      return reached ? status : dtrun_status{DTRUN_OK};
    });
    return reached;
  }
  void WaitEvent(dtrun_event* event, const dtrun_stream& stream) const {
    sdk::Check([&](dtrun_error* e) { return table_.event_wait(self_, event, &stream, e); });
  }
  dtrun_event* MakeEvent() const {
    dtrun_event* event = nullptr;
    sdk::Check([&](dtrun_error* e) { return table_.event_create(self_, index_, &event, e); });
    return event;
  }
  void DestroyEvent(dtrun_event* event) const { table_.event_destroy(self_, event); }
  dtrun_stream MakeStream() const {
    dtrun_stream_params params;
    DTRUN_INIT(params);
    params.device_index = index_;
    dtrun_stream stream;
    DTRUN_INIT(stream);
    sdk::Check([&](dtrun_error* e) { return table_.stream_create(self_, &params, &stream, e); });
    return stream;
  }
  void DestroyStream(const dtrun_stream& stream) const { table_.stream_destroy(self_, &stream); }
  // Host memory for copies that do not block. Null if there is none left.
  void* AllocateHost(std::uint64_t bytes) const {
    const dtrun_mem_params params = HostMemory(bytes);
    void* memory = nullptr;
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = table_.mem_alloc(self_, &params, &memory, &error);
    if (status == DTRUN_OUT_OF_MEMORY) return nullptr;
    if (status != DTRUN_OK) throw sdk::Failure(error, status);
    return memory;
  }
  void FreeHost(void* memory, std::uint64_t bytes) const {
    const dtrun_mem_params params = HostMemory(bytes);
    table_.mem_free(self_, &params, memory);
  }

 private:
  static dtrun_mem_params HostMemory(std::uint64_t bytes) {
    dtrun_mem_params params;
    DTRUN_INIT(params);
    params.bytes = bytes;
    params.alignment = 4096;
    params.device_kind = DTRUN_DEVICE_HOST;
    params.device_index = -1;
    return params;
  }

  const dtrun_device& table_;
  dtrun_instance* const self_;
  const int index_;
};

class OwnedStream {
 public:
  explicit OwnedStream(const DeviceCalls& device) : device_(device), stream_(device.MakeStream()) {}
  ~OwnedStream() { device_.DestroyStream(stream_); }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;

  const dtrun_stream& operator*() const { return stream_; }

 private:
  const DeviceCalls& device_;
  const dtrun_stream stream_;
};

struct HostPiece {
  void* memory = nullptr;
  std::uint64_t bytes = 0;
  bool pinned = false;
};

class PiecePool;

// Returns itself to its pool.
class Piece {
 public:
  Piece() = default;
  Piece(PiecePool& pool, const HostPiece& piece) : pool_(&pool), piece_(piece) {}
  Piece(Piece&& other) noexcept { *this = std::move(other); }
  Piece& operator=(Piece&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(piece_, other.piece_);
    return *this;
  }
  ~Piece();

  void* memory() const { return piece_.memory; }
  std::uint64_t bytes() const { return piece_.bytes; }

 private:
  PiecePool* pool_ = nullptr;
  HostPiece piece_;
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

 private:
  friend class Piece;
  void Give(const HostPiece& piece);
  void Return(const HostPiece& piece);

  const DeviceCalls& device_;
  const std::string name_;
  std::vector<HostPiece> free_;
  bool leak_ = false;
  bool short_of_pinned_ = false;  // it has run out
};

}  // namespace dtrun::comm

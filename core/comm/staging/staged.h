// An operation that is being staged: its rounds are copied out, sent and copied in, several at a time.
//
// The enqueuing thread creates it; afterwards only the communicator's thread advances it. Its outcome is for
// any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/staging/pieces.h"
#include "core/comm/staging/rounds.h"
#include "dtrun/plugin/deadline.hpp"

namespace dtrun::comm {

class StagingWire;

class Staged {
 public:
  enum class Outcome : int { kRunning, kDone, kFailed };

  // `direct`: the wire supports the device's memory, so nothing is copied.
  Staged(const dtrun_op& op, int rank, int size, std::uint64_t most_bytes, bool direct)
      : direct_(direct),
        op_(op, size),
        rounds_(*op_, rank, size, most_bytes),
        deadline_(sdk::Nanoseconds(op.timeout_ns)) {}

  const dtrun_op& op() const { return *op_; }
  const sdk::Deadline& deadline() const { return deadline_; }
  bool collective() const { return sdk::IsCollective(op_->kind); }
  Outcome outcome() const { return outcome_.load(std::memory_order_acquire); }
  void End(Outcome outcome) { outcome_.store(outcome, std::memory_order_release); }

  // The event that its stream must reach before it starts; null: none. Owned by the communicator.
  dtrun_event* ready = nullptr;

  // The communicator's thread has it, and will end it.
  std::atomic<bool> launched = false;

  // The device has all copies that later work on a stream must follow. If the operation only sends, these are
  // the copies out: its buffer may be written again afterwards.
  bool given() const { return given_.load(std::memory_order_acquire); }
  // The event behind those copies; null: there are none. REQUIRES: given, and not freed.
  dtrun_event* last_copy() const { return last_copy_; }

  // ---- the communicator's thread ----

  struct Lanes {
    const DeviceCalls& device;
    const dtrun_stream& out;
    const dtrun_stream& in;
    PiecePool& pieces;
    StagingWire& wire;
  };
  // Advances what it can; false if nothing. `may_send`: all operations before it have given theirs to the
  // wire.
  bool Advance(const Lanes& lanes, bool may_send);
  bool sent() const { return next_wire_ == rounds(); }
  bool done() const { return next_done_ == rounds(); }
  // Sets `given` if it is reached; true if this call set it.
  bool MarkGiven();
  // The first request in flight, to wait for; null: none.
  dtrun_request* Waiting() const;
  // Another one is in flight behind it, so the wire does not run dry when it ends.
  bool MoreBehind() const { return next_wire_ > next_in_ + 1; }
  // Releases its requests on the wire, which has been aborted.
  void Drop(StagingWire& wire);
  // Whether copies of it may still run.
  bool Copies(const DeviceCalls& device) const;
  // Frees its events and pieces.
  void Free(const DeviceCalls& device);

 private:
  // A round's memory and progress.
  struct Slot {
    Round round;
    Piece send, recv;
    dtrun_event* copied = nullptr;  // out, then in
    bool recorded = false;
    dtrun_request* request = nullptr;
  };
  static constexpr std::uint64_t kSlots = 4;

  Slot& SlotOf(std::uint64_t round) { return slots_[round % slots_.size()]; }
  // Takes memory for its round. False if there is none, but earlier rounds have some: they will do.
  bool Hold(const Lanes& lanes, Slot& slot);
  void CopyOut(const Lanes& lanes, Slot& slot);
  void Send(const Lanes& lanes, Slot& slot);
  void CopyIn(const Lanes& lanes, Slot& slot);

  // How many rounds there are.
  std::uint64_t rounds() const { return direct_ ? 1 : rounds_.size(); }

  const bool direct_;
  const sdk::OwnedOp op_;
  const Rounds rounds_;
  const sdk::Deadline deadline_;
  std::atomic<Outcome> outcome_{Outcome::kRunning};
  std::atomic<bool> given_{false};
  dtrun_event* last_copy_ = nullptr;

  std::vector<Slot> slots_;
  bool begun_ = false;
  // Rounds before these have begun to go out, are on the wire, have begun to come in, are done.
  std::uint64_t next_out_ = 0, next_wire_ = 0, next_in_ = 0, next_done_ = 0;
};

}  // namespace dtrun::comm

// An operation that is being staged: its rounds go out, over the wire and in, several at a time.
//
// Made by the thread that enqueues, then moved on by the communicator's thread alone, except for its outcome.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/comm/staging/pieces.h"
#include "core/comm/staging/rounds.h"
#include "dtrun/plugin/deadline.hpp"

namespace dtrun::comm {

// The wire, as a staged operation sees it.
class Wire {
 public:
  virtual ~Wire() = default;
  // Null: it is done. Throws.
  virtual dtrun_request* Start(dtrun_op op, const sdk::Deadline& deadline) = 0;
  virtual bool Test(dtrun_request* request) = 0;
  virtual void Release(dtrun_request* request) = 0;
};

class Staged {
 public:
  enum class Outcome : int { kRunning, kDone, kFailed };

  // `number`: of this operation on its communicator, from 1.
  // `direct`: the wire takes the device's memory, so nothing is copied.
  Staged(const dtrun_op& op, int rank, int size, std::uint64_t number, std::uint64_t most_bytes, bool direct)
      : direct_(direct),
        op_(op, size),
        rounds_(*op_, rank, size, most_bytes),
        number_(number),
        deadline_(sdk::Nanoseconds(op.timeout_ns)) {}

  const dtrun_op& op() const { return *op_; }
  std::uint64_t number() const { return number_; }
  const sdk::Deadline& deadline() const { return deadline_; }
  bool collective() const { return sdk::IsCollective(op_->kind); }
  Outcome outcome() const { return outcome_.load(std::memory_order_acquire); }
  void End(Outcome outcome) { outcome_.store(outcome, std::memory_order_release); }

  // Where its stream must have come to before it starts; null: nowhere. The communicator's.
  dtrun_event* ready = nullptr;

  // It has been given to the communicator's thread, which ends it.
  std::atomic<bool> launched = false;

  // The device has all copies of it that later work on a stream must come after. Those of an operation that
  // only sends are the ones out: its buffer may then be written again.
  bool given() const { return given_.load(std::memory_order_acquire); }
  // Behind those copies; null: there are none. REQUIRES: given, and not freed.
  dtrun_event* last_copy() const { return last_copy_; }

  // ---- the communicator's thread ----

  struct Lanes {
    const DeviceCalls& device;
    const dtrun_stream& out;
    const dtrun_stream& in;
    PiecePool& pieces;
    Wire& wire;
  };
  // Moves on what can; false when nothing could. `may_send`: the operations before it have given theirs to
  // the wire.
  bool Advance(const Lanes& lanes, bool may_send);
  bool sent() const { return next_wire_ == rounds(); }
  bool done() const { return next_done_ == rounds(); }
  // Whether it has become `given` now.
  bool MarkGiven();
  // The first request under way, to wait for; null: none.
  dtrun_request* Waiting() const;
  // Another one is under way behind it, so the wire does not run dry when it ends.
  bool MoreBehind() const { return next_wire_ > next_in_ + 1; }
  // Lets go of what is under way on the wire, which has been aborted.
  void Drop(Wire& wire);
  // Copies of it that may still run.
  bool Copies(const DeviceCalls& device) const;
  // Gives events and pieces back.
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
  // Memory for its round. False when there is none, and rounds before it are on their way: they will do.
  bool Hold(const Lanes& lanes, Slot& slot);
  void CopyOut(const Lanes& lanes, Slot& slot);
  void Send(const Lanes& lanes, Slot& slot);
  void CopyIn(const Lanes& lanes, Slot& slot);

  // How many rounds there are.
  std::uint64_t rounds() const { return direct_ ? 1 : rounds_.size(); }

  const bool direct_;
  const sdk::OwnedOp op_;
  const Rounds rounds_;
  const std::uint64_t number_;
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

#include "core/comm/staging/staged.h"

#include <algorithm>

#include "core/comm/staging/communicator.h"

namespace dtrun::comm {

bool Staged::Advance(const Lanes& lanes, bool may_send) {
  // The host polls it, because all operations share two streams: a wait there would hold up the copies of
  // earlier operations, and `ready` may depend on their end.
  if (!begun_ && ready != nullptr && !lanes.device.Test(ready)) return false;
  bool advanced = !begun_;
  if (!begun_) slots_.resize(std::min(kSlots, rounds()));
  begun_ = true;
  for (; next_done_ < next_in_; ++next_done_) {
    Slot& slot = SlotOf(next_done_);
    if (slot.recorded && !lanes.device.Test(slot.copied)) break;
    slot.recorded = false;
    advanced = true;
  }
  for (; next_out_ < rounds() && next_out_ < next_done_ + slots_.size(); ++next_out_) {
    Slot& slot = SlotOf(next_out_);
    if (!direct_) slot.round = rounds_.At(next_out_);
    if (!Hold(lanes, slot)) break;
    CopyOut(lanes, slot);
    advanced = true;
  }
  for (; may_send && next_wire_ < next_out_; ++next_wire_) {
    Slot& slot = SlotOf(next_wire_);
    if (slot.recorded && !lanes.device.Test(slot.copied)) break;
    slot.recorded = false;
    Send(lanes, slot);
    advanced = true;
  }
  for (; next_in_ < next_wire_; ++next_in_) {
    Slot& slot = SlotOf(next_in_);
    if (slot.request != nullptr && !lanes.wire.Test(slot.request)) break;
    if (slot.request != nullptr) lanes.wire.Release(std::exchange(slot.request, nullptr));
    CopyIn(lanes, slot);
    advanced = true;
  }
  return advanced;
}

bool Staged::MarkGiven() {
  if (given() || next_out_ < rounds()) return false;
  const Slot& last = SlotOf(rounds() - 1);
  const bool only_sends = !last.round.out.empty() && last.round.in.empty();
  if (!only_sends && next_in_ < rounds()) return false;
  last_copy_ = last.copied;
  given_.store(true, std::memory_order_release);
  return true;
}

bool Staged::Hold(const Lanes& lanes, Slot& slot) {
  const Round& round = slot.round;
  try {
    if (slot.send.bytes() < round.send_bytes) slot.send = lanes.pieces.Take(round.send_bytes);
    if (!round.in_place && slot.recv.bytes() < round.recv_bytes)
      slot.recv = lanes.pieces.Take(round.recv_bytes);
    return true;
  } catch (const sdk::Failure& failure) {
    if (next_out_ == 0 || failure.code() != DTRUN_OUT_OF_MEMORY) throw;
    slots_.resize(next_out_);  // up to the slots in use: this one and later ones have had no round
    return false;
  }
}

void Staged::CopyOut(const Lanes& lanes, Slot& slot) {
  const Round& round = slot.round;
  const bool sends_recv = op_->kind == DTRUN_BROADCAST;
  const void* const from = sends_recv ? op_->recv : op_->send;
  void* const to = sends_recv ? slot.recv.memory() : slot.send.memory();
  for (const StagedCopy& copy : round.out)
    lanes.device.Copy(sdk::At(to, copy.host, 1), sdk::At(from, copy.device, 1), copy.bytes, lanes.out);
  if (round.out.empty()) return;
  if (slot.copied == nullptr) slot.copied = lanes.device.MakeEvent();
  lanes.device.Record(slot.copied, lanes.out);
  slot.recorded = true;
}

void Staged::Send(const Lanes& lanes, Slot& slot) {
  dtrun_op op = *op_;
  if (direct_) {
    slot.request = lanes.wire.Start(op, deadline_);
    return;
  }
  op.count = slot.round.count;
  op.send = slot.round.send_bytes > 0 ? slot.send.memory() : nullptr;
  op.recv = slot.round.in_place         ? slot.send.memory()
            : slot.round.recv_bytes > 0 ? slot.recv.memory()
                                        : nullptr;
  slot.request = lanes.wire.Start(op, deadline_);
}

void Staged::CopyIn(const Lanes& lanes, Slot& slot) {
  const Round& round = slot.round;
  if (round.in.empty()) return;
  const void* const from = round.in_place ? slot.send.memory() : slot.recv.memory();
  for (const StagedCopy& copy : round.in)
    lanes.device.Copy(sdk::At(op_->recv, copy.device, 1), sdk::At(from, copy.host, 1), copy.bytes, lanes.in);
  if (slot.copied == nullptr) slot.copied = lanes.device.MakeEvent();
  lanes.device.Record(slot.copied, lanes.in);
  slot.recorded = true;
}

dtrun_request* Staged::Waiting() const {
  if (next_in_ == next_wire_ || slots_.empty()) return nullptr;
  return slots_[next_in_ % slots_.size()].request;
}

void Staged::Drop(StagingWire& wire) {
  for (Slot& slot : slots_) {
    if (slot.request != nullptr) wire.Release(std::exchange(slot.request, nullptr));
  }
}

bool Staged::Copies(const DeviceCalls& device) const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [&](const Slot& slot) { return slot.recorded && !device.Test(slot.copied); });
}

void Staged::Free(const DeviceCalls& device) {
  for (Slot& slot : slots_) {
    if (slot.copied != nullptr) device.DestroyEvent(std::exchange(slot.copied, nullptr));
  }
  slots_.clear();
}

}  // namespace dtrun::comm

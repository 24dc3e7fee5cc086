#include "core/comm/shm/communicator.h"

#include <new>

#include "dtrun/plugin/op.hpp"

namespace dtrun::shm {

using sdk::Failure;

ShmCommunicator::ShmCommunicator(const sdk::Host& host, const sdk::CommParams& params)
    : group_(host, params),
      collectives_(group_),
      messages_(group_),
      calls_(host, *this, "shm-calls", params.size) {}

std::unique_ptr<sdk::Request> ShmCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  group_.ThrowIfFailed();
  if (!sdk::IsCollective(op.kind)) return messages_.Start(op);
  try {
    return calls_.Enqueue(op);
  } catch (const std::bad_alloc&) {
    FailHalfDone();  // it may have begun
  }
}

bool ShmCommunicator::Begin(const dtrun_op& op) {
  last_started_.store(op.sequence, std::memory_order_relaxed);
  return collectives_.Begin(op);
}

void ShmCommunicator::Run(Running& running) {
  last_started_.store(running.op->sequence, std::memory_order_relaxed);
  try {
    collectives_.Run(running);
  } catch (const std::bad_alloc&) {
    FailHalfDone();
  }
  last_completed_.store(running.op->sequence, std::memory_order_relaxed);
}

// The other ranks cannot finish the call either.
void ShmCommunicator::FailHalfDone() {
  group_.Fail(Failure(DTRUN_OUT_OF_MEMORY, "out of memory in the middle of a call"));
}

void ShmCommunicator::Abandon(const Running& running) { group_.Abandon(running); }

void ShmCommunicator::Abort(const std::string& reason) { group_.Abort(reason); }

void ShmCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives started up to " + std::to_string(last_started_) + ", completed up to " +
            std::to_string(last_completed_));
  if (const auto text = group_.FailureText()) sink.Line("failed: " + *text);
}

void* ShmCommunicator::MemAlloc(const dtrun_mem_params& params) { return AllocateRegion(params.bytes); }
void ShmCommunicator::MemFree(void* memory) { ReleaseRegion(memory); }

}  // namespace dtrun::shm

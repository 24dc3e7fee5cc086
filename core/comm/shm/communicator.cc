#include "core/comm/shm/communicator.h"

#include <new>

#include "core/comm/operation.h"

namespace dtrun::shm {

using sdk::Failure;

ShmCommunicator::ShmCommunicator(const sdk::Host& host, const sdk::CommParams& params, bool checks)
    : checks_(checks),
      group_(host, params),
      collectives_(group_),
      messages_(group_),
      calls_(*this, "shm-calls", params.size) {}

// What core has checked before; the conformance suite comes without core.
void ShmCommunicator::Check(const dtrun_op& op, const dtrun_stream* stream) const {
  if (stream != nullptr && stream->device_kind != 0) {
    throw Failure(DTRUN_UNSUPPORTED, "shared memory is host memory; use a backend for device memory");
  }
  if (op.kind <= 0 || op.kind >= DTRUN_OP_COUNT) {
    throw Failure(DTRUN_UNSUPPORTED, "operation " + std::to_string(op.kind) + " is unknown to this dtrun");
  }
  comm::Scope scope;
  scope.comm = group_.name();
  scope.backend = "shm";
  scope.rank = group_.rank();
  scope.size = group_.size();
  scope.caps.flags = DTRUN_CAP_ANY_SOURCE;
  scope.caps.ops = ~std::uint64_t{0};
  scope.caps.dtypes = ~std::uint64_t{0};
  scope.caps.reduces = ~std::uint64_t{0};
  if (const Status valid = comm::Check(op, scope); !valid)
    throw Failure(valid.error().code, valid.error().text);
}

std::unique_ptr<sdk::Request> ShmCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream* stream) {
  if (checks_) Check(op, stream);
  group_.ThrowIfFailed();
  if (!comm::IsCollective(op.kind)) return messages_.Start(op);
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

// The others cannot finish either.
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

void* ShmCommunicator::MemAlloc(std::uint64_t bytes) { return AllocateRegion(bytes); }
void ShmCommunicator::MemFree(void* memory) { ReleaseRegion(memory); }

}  // namespace dtrun::shm

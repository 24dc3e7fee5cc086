#include "transfer.h"

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "dtrun/kernels.hpp"
#include "messenger.h"

namespace dtrun::gloo_plugin {
namespace {

// Gloo cannot be asked whether something is complete, only be waited for and interrupted.
// A completed exchange is reported by the wait at once; this is how long one looks.
constexpr std::chrono::microseconds kShortestLook{200};
// The last look before an operation is declared late.
constexpr std::chrono::microseconds kLongestLook{200'000};

}  // namespace

Transfer::Transfer(Mesh& mesh, int peer, const void* memory, std::size_t bytes) : mesh_(mesh), peer_(peer) {
  buffer_ = mesh.context()->createUnboundBuffer(const_cast<void*>(memory), bytes);
  mesh.Register(this);
}

Transfer::~Transfer() { mesh_.Unregister(this); }

// What Gloo throws is the end of the communicator.
template <class Call>
auto Transfer::Guarded(Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    if (peer_ == DTRUN_ANY_SOURCE) {
      mesh_.FailUnknownLost(error.what());
    } else {
      mesh_.FailLost(peer_, error.what());
    }
    mesh_.ThrowCause();
  }
}

void Transfer::Send(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  mesh_.ThrowIfFailed();
  Guarded([&] { buffer_->send(peer_, slot, offset, bytes); });
  ++sends_;
}

void Transfer::Recv(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  mesh_.ThrowIfFailed();
  Guarded([&] {
    if (peer_ != DTRUN_ANY_SOURCE) return buffer_->recv(peer_, slot, offset, bytes);
    std::vector<int> others;
    for (int rank = 0; rank < mesh_.size(); ++rank) {
      if (rank != mesh_.rank()) others.push_back(rank);
    }
    buffer_->recv(others, slot, offset, bytes);
  });
  ++recvs_;
}

bool Transfer::WaitSend(Operation& operation) {
  operation.waiting_for.store(peer_, std::memory_order_relaxed);
  const bool done = Guarded([&] { return buffer_->waitSend(nullptr, kTenYears); });
  if (!done) mesh_.ThrowIfFailed();
  if (done) --sends_;
  return done;
}

bool Transfer::WaitRecv(Operation& operation) {
  operation.waiting_for.store(peer_ == DTRUN_ANY_SOURCE ? Operation::kAnyone : peer_,
                              std::memory_order_relaxed);
  const bool done = Guarded([&] { return buffer_->waitRecv(&source_, kTenYears); });
  if (!done) mesh_.ThrowIfFailed();
  if (done) --recvs_;
  return done;
}

void Transfer::FinishSends(Operation& operation) {
  while (sends_ > 0) WaitSend(operation);
}

void Transfer::FinishRecvs(Operation& operation) {
  while (recvs_ > 0) WaitRecv(operation);
}

void Transfer::Interrupt() {
  buffer_->abortWaitRecv();
  buffer_->abortWaitSend();
}

PointToPointRequest::PointToPointRequest(Mesh& mesh, const dtrun_op& op)
    : mesh_(mesh),
      sending_(op.kind == DTRUN_SEND),
      source_(op.source),
      operation_(op),
      transfer_(mesh, op.peer, sending_ ? op.send : op.recv, op.count * kernels::ElementBytes(op.dtype)) {
  operation_.waiting_for = op.peer == DTRUN_ANY_SOURCE ? Operation::kAnyone : op.peer;
  const std::size_t bytes = op.count * kernels::ElementBytes(op.dtype);
  const NoSigpipe quiet;
  if (sending_) {
    transfer_.Send(MessageSlot(op), 0, bytes);
  } else {
    transfer_.Recv(MessageSlot(op), 0, bytes);
  }
  timeout_.emplace(*mesh.timer(), sdk::Deadline(operation_.timeout), [this] { Expire(); });
}

PointToPointRequest::~PointToPointRequest() {
  try {
    Wait(sdk::kNoLimit);
  } catch (const sdk::Failure&) {
    // Core has dropped the request: its end matters, its outcome does not.
  }
  timeout_.reset();
}

bool PointToPointRequest::Wait(sdk::Nanoseconds timeout) {
  const sdk::Deadline deadline(timeout);
  std::unique_lock lock(mutex_);
  for (bool looked = false;;) {
    if (done_) {
      if (failure_) throw *failure_;
      return true;
    }
    if (looked && deadline.passed()) return false;
    if (waiting_) {
      looked = true;
      changed_.wait_until(lock, deadline.at(), [this] { return done_ || !waiting_; });
      continue;
    }
    waiting_ = true;
    lock.unlock();
    bool done = false;
    std::optional<sdk::Failure> failure;
    try {
      const TimerEntry entry(*mesh_.timer(), deadline.AtLeast(kShortestLook),
                             [this] { transfer_.Interrupt(); });
      done = WaitForTransfer();
    } catch (const sdk::Failure& thrown) {
      failure = thrown;
    }
    lock.lock();
    waiting_ = false;
    looked = true;
    done_ = done || failure;
    failure_ = std::move(failure);
    changed_.notify_all();
  }
}

bool PointToPointRequest::WaitForTransfer() {
  if (sending_) return transfer_.WaitSend(operation_);
  if (!transfer_.WaitRecv(operation_)) return false;
  if (source_ != nullptr) *source_ = transfer_.source();
  return true;
}

// The deadline of the operation, on the timer's thread. It may be complete without anybody
// having looked.
void PointToPointRequest::Expire() {
  {
    const std::lock_guard lock(mutex_);
    if (!waiting_ && !done_) {
      try {
        done_ = LookForCompletion();
      } catch (const sdk::Failure& thrown) {
        failure_ = thrown;
        done_ = true;
      }
      if (done_) changed_.notify_all();
    }
    if (done_) return;
  }
  mesh_.FailTimeout(operation_);
}

// An interruption that comes before the wait has begun hides a completion, as when this
// thread loses its core in between. So it looks again, longer.
bool PointToPointRequest::LookForCompletion() {
  for (std::chrono::microseconds look = kShortestLook; look <= kLongestLook; look *= 10) {
    std::thread interrupter([this, look] {
      std::this_thread::sleep_for(look);
      transfer_.Interrupt();
    });
    struct Join {
      std::thread& thread;
      ~Join() { thread.join(); }
    } const join{interrupter};
    if (WaitForTransfer()) return true;
  }
  return false;
}

}  // namespace dtrun::gloo_plugin

#include "core/comm/shm/communicator.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/thread.h"
#include "core/comm/operation.h"

namespace dtrun::shm {

using sdk::Failure;

// One call. Its memory is kept for the thread's next one: a blocking call allocates nothing.
class CallRequest final : public sdk::Request {
 public:
  CallRequest(ShmCommunicator& owner, const dtrun_op& op, int size)
      : op_(op), running_{&op_, Deadline(op.timeout_ns)}, owner_(owner) {
    if (op.send_counts != nullptr || op.recv_counts != nullptr) CopyArrays(size);
  }
  ~CallRequest() override {
    if (done_.load(std::memory_order_acquire)) return;
    try {
      owner_.Wait(*this, sdk::kNoLimit);
    } catch (const Failure&) {
      // Whoever dropped the request did not ask how it ended; the communicator knows.
    }
  }
  bool Test() override { return owner_.Wait(*this, std::chrono::nanoseconds(0)); }
  bool Wait(sdk::Nanoseconds timeout) override { return owner_.Wait(*this, timeout); }

  static void* operator new(std::size_t bytes) {
    if (void* const kept = std::exchange(kept_.memory, nullptr)) return kept;
    return ::operator new(bytes);
  }
  static void operator delete(void* memory) {
    if (kept_.memory == nullptr) {
      kept_.memory = memory;
    } else {
      ::operator delete(memory);
    }
  }

 private:
  friend class ShmCommunicator;

  struct Kept {
    ~Kept() { ::operator delete(memory); }
    void* memory = nullptr;
  };
  static thread_local Kept kept_;

  // Keeps the arrays that the caller lends for the time of enqueue only.
  void CopyArrays(int size) {
    const auto n = static_cast<std::size_t>(size);
    arrays_ = std::make_unique<std::uint64_t[]>(4 * n);
    std::uint64_t* copy = arrays_.get();
    for (const std::uint64_t** array :
         {&op_.send_counts, &op_.send_offsets, &op_.recv_counts, &op_.recv_offsets}) {
      if (*array == nullptr) continue;
      std::copy_n(*array, n, copy);
      *array = copy;
      copy += n;
    }
  }

  dtrun_op op_;
  std::unique_ptr<std::uint64_t[]> arrays_;
  Running running_;
  std::atomic<bool> started_{false};  // keeps its own deadline from now on
  std::atomic<bool> done_{false};
  std::optional<Failure> failure_;  // written before done_
  ShmCommunicator& owner_;
};

thread_local CallRequest::Kept CallRequest::kept_;

ShmCommunicator::ShmCommunicator(const sdk::Host& host, const sdk::CommParams& params, bool checks)
    : checks_(checks), group_(host, params), collectives_(group_), messages_(group_) {}

ShmCommunicator::~ShmCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

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

  auto request = std::make_unique<CallRequest>(*this, op, group_.size());
  const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
  if (blocking && queued_.load(std::memory_order_acquire) == 0 &&
      !caller_runs_.load(std::memory_order_relaxed) && waiting_.load(std::memory_order_relaxed) == nullptr) {
    waiting_.store(request.get(), std::memory_order_release);
    return request;
  }
  request->running_.deadline.Start();
  const std::lock_guard lock(mutex_);
  if (CallRequest* const before = waiting_.exchange(nullptr)) Queue(*before);
  Queue(*request);
  return request;
}

void ShmCommunicator::Queue(CallRequest& call) {
  queued_.fetch_add(1);
  queue_.push_back(&call);
  if (!worker_.joinable()) worker_ = StartThread("shm-calls", [this] { RunCalls(); });
  changed_.notify_all();
}

void ShmCommunicator::Execute(CallRequest& call) {
  call.started_.store(true, std::memory_order_relaxed);
  last_started_.store(call.op_.sequence, std::memory_order_relaxed);
  try {
    collectives_.Run(call.running_);
    last_completed_.store(call.op_.sequence, std::memory_order_relaxed);
  } catch (const Failure& failure) {
    call.failure_ = failure;
  } catch (const std::bad_alloc&) {
    // Half done, so the others cannot finish either.
    try {
      group_.Fail(Failure(DTRUN_OUT_OF_MEMORY, "out of memory in the middle of a call"));
    } catch (const Failure& failure) {
      call.failure_ = failure;
    }
  }
}

bool ShmCommunicator::Wait(CallRequest& call, std::chrono::nanoseconds timeout) {
  CallRequest* mine = &call;
  if (waiting_.load(std::memory_order_relaxed) == &call) {
    if (timeout == std::chrono::nanoseconds(0)) {
      // Only looked at: it must get on without this thread.
      const std::lock_guard lock(mutex_);
      if (waiting_.compare_exchange_strong(mine, nullptr)) Queue(call);
    } else {
      caller_runs_.store(true, std::memory_order_relaxed);
      if (waiting_.compare_exchange_strong(mine, nullptr)) {
        Execute(call);
        call.done_.store(true, std::memory_order_release);
      }
      caller_runs_.store(false);  // before the look at queued_; an enqueue counts before it looks
      if (queued_.load() > 0) [[unlikely]] {
        const std::lock_guard lock(mutex_);  // the worker has either seen the flag or sleeps
        changed_.notify_all();
      }
    }
  }
  if (!call.done_.load(std::memory_order_acquire)) {
    Deadline patience(timeout.count());
    std::unique_lock lock(mutex_);
    while (!call.done_) {
      // A call that waits for its turn may stand behind one without a limit, which ends with it.
      if (!call.started_ && call.running_.deadline.Passed()) group_.Abandon(call.running_);
      if (patience.Passed()) return false;
      constexpr std::chrono::hours kLong(1);
      const auto limit = patience.Left(call.started_ ? kLong : call.running_.deadline.Left(kLong));
      changed_.wait_for(lock, std::max<std::chrono::nanoseconds>(limit, std::chrono::microseconds(50)));
    }
  }
  if (call.failure_) throw Failure(*call.failure_);
  return true;
}

void ShmCommunicator::RunCalls() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return (stop_ || !queue_.empty()) && !caller_runs_.load(); });
    if (queue_.empty()) return;
    CallRequest& call = *queue_.front();
    queue_.pop_front();
    lock.unlock();
    Execute(call);
    lock.lock();
    queued_.fetch_sub(1);
    call.done_.store(true, std::memory_order_release);
    changed_.notify_all();
  }
}

void ShmCommunicator::Abort(const std::string& reason) { group_.Abort(reason); }

void ShmCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives started up to " + std::to_string(last_started_) + ", completed up to " +
            std::to_string(last_completed_));
  if (const auto text = group_.FailureText()) sink.Line("failed: " + *text);
}

void* ShmCommunicator::MemAlloc(std::uint64_t bytes) { return AllocateRegion(bytes); }
void ShmCommunicator::MemFree(void* memory) { ReleaseRegion(memory); }

}  // namespace dtrun::shm

#include "core/comm/shm/call_queue.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "core/base/thread.h"

namespace dtrun::shm {

using sdk::Failure;

// One call. Its memory is kept for the thread's next one: a blocking call allocates nothing.
class CallRequest final : public sdk::Request {
 public:
  CallRequest(CallQueue& owner, const dtrun_op& op, int size)
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
  friend class CallQueue;

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
  CallQueue& owner_;
};

thread_local CallRequest::Kept CallRequest::kept_;

CallQueue::~CallQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

std::unique_ptr<sdk::Request> CallQueue::Enqueue(const dtrun_op& op) {
  const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
  // In this order: who takes the waiting call says first that its caller runs.
  if (blocking && queued_.load(std::memory_order_acquire) == 0 &&
      waiting_.load(std::memory_order_acquire) == nullptr && !caller_runs_.load(std::memory_order_acquire)) {
    const bool entered = runner_.Begin(op);
    auto request = std::make_unique<CallRequest>(*this, op, size_);
    request->running_.entered = entered;
    if (entered && runner_.Ready()) {
      Execute(*request);
      request->done_.store(true, std::memory_order_release);
      return request;
    }
    waiting_.store(request.get(), std::memory_order_release);
    return request;
  }
  auto request = std::make_unique<CallRequest>(*this, op, size_);
  request->running_.deadline.Start();
  const std::lock_guard lock(mutex_);
  if (CallRequest* const before = waiting_.exchange(nullptr)) Queue(*before);
  Queue(*request);
  return request;
}

void CallQueue::Queue(CallRequest& call) {
  queued_.fetch_add(1);
  queue_.push_back(&call);
  if (!worker_.joinable()) worker_ = StartThread(thread_, [this] { RunCalls(); });
  changed_.notify_all();
}

void CallQueue::Execute(CallRequest& call) {
  call.started_.store(true, std::memory_order_relaxed);
  try {
    runner_.Run(call.running_);
  } catch (const Failure& failure) {
    call.failure_ = failure;
  }
}

bool CallQueue::Wait(CallRequest& call, std::chrono::nanoseconds timeout) {
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
      if (!call.started_ && call.running_.deadline.Passed()) runner_.Abandon(call.running_);
      if (patience.Passed()) return false;
      constexpr std::chrono::hours kLong(1);
      const auto limit = patience.Left(call.started_ ? kLong : call.running_.deadline.Left(kLong));
      changed_.wait_for(lock, std::max<std::chrono::nanoseconds>(limit, std::chrono::microseconds(50)));
    }
  }
  if (call.failure_) throw Failure(*call.failure_);
  return true;
}

void CallQueue::RunCalls() {
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

}  // namespace dtrun::shm

// dtrun/plugin/call_queue.hpp - collectives, one after another, for a transport that blocks.
//
// Not part of plugin.hpp. For collectives only: a message must not wait for a collective, nor delay one.
// A blocking call with nothing ahead of it runs on its caller's thread, without a thread switch: it begins
// when it is waited for, tested, dropped or followed by another one. Others run on a thread of the queue,
// which the first of them starts. A call that passes its deadline before its turn has the communicator fail,
// whether or not anybody looks at it: a second thread does that, started by the first call that may not
// outlast those ahead. Owned by a communicator, and destroyed before its Runner, when every request is gone;
// dropping a request waits for its call, so one that hangs in Run is ended by failing the communicator and by
// nothing else. Enqueue: one thread at a time; the rest: any thread. It throws, and starts nothing, where no
// thread can start.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/deadline.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::sdk {
inline namespace v0 __attribute__((visibility("hidden"))) {

  // The deadline of a call. Reads the clock only when first asked, so a call that never waits never reads it.
  // One thread, until it has been started.
  class LazyDeadline {
   public:
    explicit LazyDeadline(std::int64_t timeout_ns) : timeout_ns_(timeout_ns) {}
    const Deadline& Start() {
      if (started_) return deadline_;
      deadline_ = Deadline(Nanoseconds(timeout_ns_));
      started_ = true;
      return deadline_;
    }
    bool Passed() { return timeout_ns_ >= 0 && Start().passed(); }
    // At most `most`, at least a moment.
    Nanoseconds Left(Nanoseconds most) {
      if (timeout_ns_ < 0) return most;
      return std::max(Nanoseconds(1), std::min(most, Start().Left()));
    }
    std::int64_t timeout_ns() const { return timeout_ns_; }

   private:
    std::int64_t timeout_ns_;
    bool started_ = false;
    Deadline deadline_;
  };

  // A call that runs.
  struct Running {
    const dtrun_op* op;
    LazyDeadline deadline;
    bool entered = false;  // Runner::Begin has returned true
    bool beside = false;   // on the queue's thread, beside a program that may want the processor
  };

  // What a queue runs calls on.
  class Runner {
   public:
    // Does what the call needs before it first waits for a peer, and returns whether it did anything. Called
    // only if no other call is ahead of this one. Throws as Run does.
    virtual bool Begin(const dtrun_op& op) {
      static_cast<void>(op);
      return false;
    }
    // Whether the call that has begun can run without waiting; may poll for a moment.
    virtual bool Ready() { return false; }
    // Throws Failure, and nothing else; the communicator has failed then.
    virtual void Run(Running& running) = 0;
    // The deadline of a call has passed before its turn: fails the communicator, so that the Run under way
    // returns soon and later ones fail. Beside that Run, and perhaps again; must not block. Any thread.
    virtual void Abandon(const Running& running) = 0;

   protected:
    ~Runner() = default;
  };

  class CallQueue {
   public:
    // Of a communicator of `size` ranks; `thread` is a literal of at most 15 bytes.
    CallQueue(const Host& host, Runner& runner, const char* thread, int size)
        : host_(host), runner_(runner), thread_(thread), size_(size) {}
    CallQueue(const CallQueue&) = delete;
    CallQueue& operator=(const CallQueue&) = delete;
    ~CallQueue() {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        stop_ = true;
      }
      changed_.notify_all();
      for (std::thread* const thread : {&worker_, &watch_}) {
        if (thread->joinable()) thread->join();
      }
    }

    std::unique_ptr<Request> Enqueue(const dtrun_op& op);

   private:
    class Call;

    void Execute(Call& call);
    bool Wait(Call& call, Nanoseconds timeout);
    // Has the worker run `call`. REQUIRES mutex_, and that the threads were started.
    void Queue(Call& call);
    // Starts what a call with that deadline needs in order to be queued. REQUIRES mutex_.
    void StartThreads(const Deadline& deadline);
    void Start(std::thread& thread, void (CallQueue::*body)());
    bool StartWorker();
    void Work();
    void Watch();

    const Host host_;
    Runner& runner_;
    const char* const thread_;
    const int size_;
    // A call that its caller is going to run, until it is taken: by the caller, or for the worker, because
    // another call was enqueued behind it.
    std::atomic<Call*> waiting_{nullptr};
    std::atomic<bool> caller_runs_{false};  // a call on its caller's thread
    std::atomic<int> queued_{0};            // calls of the worker that are not done

    std::mutex mutex_;
    std::condition_variable changed_;
    Call* first_ = nullptr;  // of those that wait for the worker
    Call* last_ = nullptr;
    // When the calls of the worker will have ended by their own deadlines, once there are any.
    Deadline::Clock::time_point busy_until_ = Deadline::Clock::time_point::min();
    bool stop_ = false;
    std::thread worker_;
    std::thread watch_;
  };

  // One call. Its memory is kept for the thread's next one: a blocking call allocates nothing.
  class CallQueue::Call final : public Request {
   public:
    Call(CallQueue& queue, const dtrun_op& given, int size)
        : op(given, size), running{&*op, LazyDeadline(given.timeout_ns)}, queue_(queue) {}
    ~Call() override {
      if (done.load(std::memory_order_acquire)) return;
      try {
        queue_.Wait(*this, kNoLimit);
      } catch (const Failure&) {
        // The request was dropped without asking how it ended; the communicator knows.
      }
    }
    bool Test() override { return queue_.Wait(*this, Nanoseconds(0)); }
    bool Wait(Nanoseconds timeout) override { return queue_.Wait(*this, timeout); }

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

    Deadline::Clock::time_point deadline() { return running.deadline.Start().at(); }

    const OwnedOp op;  // the caller lends its arrays for the time of enqueue only
    Running running;
    Call* next = nullptr;              // behind it in the queue
    std::atomic<bool> queued{false};   // for the worker, with a deadline that has been started
    std::atomic<bool> started{false};  // keeps its own deadline from now on
    std::atomic<bool> done{false};
    std::optional<Failure> failure;  // written before done

   private:
    struct Kept {
      Kept() : memory(nullptr) {}
      ~Kept() { ::operator delete(memory); }
      void* memory;
    };
    inline static thread_local Kept kept_;

    CallQueue& queue_;
  };

  inline std::unique_ptr<Request> CallQueue::Enqueue(const dtrun_op& op) {
    const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
    // In this order: a caller that takes its waiting call sets caller_runs_ first.
    if (blocking && queued_.load(std::memory_order_acquire) == 0 &&
        waiting_.load(std::memory_order_acquire) == nullptr &&
        !caller_runs_.load(std::memory_order_acquire)) {
      const bool entered = runner_.Begin(op);
      auto call = std::make_unique<Call>(*this, op, size_);
      call->running.entered = entered;
      if (entered && runner_.Ready()) {
        Execute(*call);
        call->done.store(true, std::memory_order_release);
        return call;
      }
      waiting_.store(call.get(), std::memory_order_release);
      return call;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    StartThreads(Deadline(Nanoseconds(op.timeout_ns)));
    auto call = std::make_unique<Call>(*this, op, size_);
    if (Call* const before = waiting_.exchange(nullptr)) Queue(*before);
    Queue(*call);
    return call;
  }

  inline void CallQueue::Start(std::thread & thread, void(CallQueue::*body)()) {
    if (thread.joinable()) return;
    const BlockSignals block;
    try {
      thread = std::thread([this, body] { (this->*body)(); });
    } catch (const std::system_error& error) {
      throw Failure(DTRUN_SYSTEM, std::string("cannot start the thread '") + thread_ + "': " + error.what() +
                                      "; raise the limit of processes (ulimit -u)");
    }
  }

  inline bool CallQueue::StartWorker() {
    try {
      Start(worker_, &CallQueue::Work);
      return true;
    } catch (const Failure&) {
      return false;
    }
  }

  inline void CallQueue::StartThreads(const Deadline& deadline) {
    Start(worker_, &CallQueue::Work);
    // What runs on its caller's thread, or is going to, may take any time.
    const bool by_caller = waiting_.load() != nullptr || caller_runs_.load();
    const bool after_its_end = queued_.load() > 0 && busy_until_ > deadline.at();
    if (!deadline.never() && (by_caller || after_its_end)) Start(watch_, &CallQueue::Watch);
  }

  inline void CallQueue::Queue(Call & call) {
    const Deadline& deadline = call.running.deadline.Start();
    if (queued_.load() == 0) busy_until_ = Deadline::Clock::time_point::min();
    busy_until_ = std::max(busy_until_, deadline.at());
    (last_ == nullptr ? first_ : last_->next) = &call;
    last_ = &call;
    call.queued.store(true, std::memory_order_release);
    queued_.fetch_add(1);
    changed_.notify_all();
  }

  inline void CallQueue::Execute(Call & call) {
    call.started.store(true, std::memory_order_relaxed);
    try {
      runner_.Run(call.running);
    } catch (const Failure& failure) {
      call.failure = failure;
    }
  }

  inline bool CallQueue::Wait(Call & call, Nanoseconds timeout) {
    Call* mine = &call;
    if (waiting_.load(std::memory_order_relaxed) == &call) {
      if (timeout == Nanoseconds(0)) {
        // The caller only tests it, so the worker has to run it.
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!StartWorker()) return false;  // the next look tries again
        if (waiting_.compare_exchange_strong(mine, nullptr)) Queue(call);
      } else {
        caller_runs_.store(true, std::memory_order_relaxed);
        if (waiting_.compare_exchange_strong(mine, nullptr)) {
          Execute(call);
          call.done.store(true, std::memory_order_release);
        }
        caller_runs_.store(false);  // before reading queued_; Queue adds to it before the worker reads this
        if (queued_.load() > 0) {
          const std::lock_guard<std::mutex> lock(mutex_);  // the worker has either seen the flag or sleeps
          changed_.notify_all();
        }
      }
    }
    if (!call.done.load(std::memory_order_acquire)) {
      LazyDeadline patience(timeout.count());
      std::unique_lock<std::mutex> lock(mutex_);
      while (!call.done) {
        // A call that waits for its turn may be behind one without a deadline; its own ends both.
        const bool behind = call.queued.load(std::memory_order_acquire) && !call.started;
        if (behind && call.running.deadline.Passed()) runner_.Abandon(call.running);
        if (patience.Passed()) return false;
        constexpr std::chrono::hours kLong(1);
        const Nanoseconds limit = patience.Left(behind ? call.running.deadline.Left(kLong) : kLong);
        changed_.wait_for(lock, std::max<Nanoseconds>(limit, std::chrono::microseconds(50)));
      }
    }
    if (call.failure) throw Failure(*call.failure);
    return true;
  }

  inline void CallQueue::Work() {
    const ThreadScope scope(host_, thread_);
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return (stop_ || first_ != nullptr) && !caller_runs_.load(); });
      if (first_ == nullptr) return;
      Call& call = *first_;
      first_ = call.next;
      if (first_ == nullptr) last_ = nullptr;
      lock.unlock();
      call.running.beside = true;
      Execute(call);
      lock.lock();
      queued_.fetch_sub(1);
      call.done.store(true, std::memory_order_release);
      changed_.notify_all();
    }
  }

  // A thread that looks at a waiting call does the same; this is for calls that no thread looks at.
  inline void CallQueue::Watch() {
    const ThreadScope scope(host_, thread_);
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_) {
      Call* next = nullptr;  // the one with the earliest deadline
      for (Call* call = first_; call != nullptr; call = call->next) {
        if (next == nullptr || call->deadline() < next->deadline()) next = call;
      }
      const bool over = next != nullptr && next->deadline() <= Deadline::Clock::now();
      if (over) runner_.Abandon(next->running);  // what runs returns soon, and wakes this thread
      if (over || next == nullptr || next->deadline() == Deadline::Clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, next->deadline());
      }
    }
  }

}  // namespace v0
}  // namespace dtrun::sdk

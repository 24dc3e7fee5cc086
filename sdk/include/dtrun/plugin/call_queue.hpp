// dtrun/plugin/call_queue.hpp - collectives, one after another, for a transport that blocks.
//
// Not part of plugin.hpp. For collectives only: a message must not wait for a collective, nor delay one.
// A blocking call with nothing ahead of it runs on its caller's thread, without a thread switch: it begins
// when it is waited for, tested, dropped or followed by another one. Others run on a thread of the queue,
// which the first of them starts. A call that passes its deadline before its turn has the communicator fail,
// whether or not anybody looks at it: a second thread does that, started by the first call that may not
// outlast those ahead. Owned by a communicator, and destroyed before its Runner, when every request is gone;
// dropping a request waits for its call, so one that hangs in Run is ended by failing the communicator, or,
// where nothing can end it, by Runner::GiveUp. Enqueue: one thread at a time; the rest: any thread. It
// throws, and starts nothing, where no thread can start.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "dtrun/plugin/backend.hpp"
#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/deadline.hpp"
#include "dtrun/plugin/op.hpp"
#include "dtrun/plugin/recycled.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

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
    virtual bool Begin(const dtrun_op& /*op*/) { return false; }
    // Whether the call that has begun can run without waiting; may poll for a moment.
    virtual bool Ready() { return false; }
    // Throws Failure, and nothing else; the communicator has failed then.
    virtual void Run(Running& running) = 0;
    // The deadline of a call has passed before its turn: fails the communicator, so that the Run under way
    // returns soon and later ones fail. Beside that Run, and perhaps again; must not block. Any thread.
    virtual void Abandon(const Running& running) = 0;
    // For a Run that nothing ends, and only for a queue with a `look`. Asked about a call that the queue's
    // thread runs (`begun`) or is going to run. A failure, which is the communicator's, ends the call,
    // although Run may never return. The thread that waits calls it; may block.
    virtual std::optional<Failure> GiveUp(Running& /*running*/, bool /*begun*/) { return std::nullopt; }

   protected:
    ~Runner() = default;
  };

  class CallQueue {
   public:
    // Of a communicator of `size` ranks; `thread` is a literal of at most 15 bytes. `look`: how often a
    // thread that waits asks Runner::GiveUp; kNoLimit: never.
    CallQueue(const Host& host, Runner& runner, const char* thread, int size, Nanoseconds look = kNoLimit)
        : host_(host), runner_(runner), thread_(thread), size_(size), look_(look) {}
    CallQueue(const CallQueue&) = delete;
    CallQueue& operator=(const CallQueue&) = delete;
    ~CallQueue() { Stop(kNoLimit); }

    std::unique_ptr<Request> Enqueue(const dtrun_op& op);
    // Ends the threads. REQUIRES that every request is gone. False: a call that was given up is in Run after
    // `limit`; the queue and its Runner must then stay until the process ends.
    bool Stop(Nanoseconds limit);

   private:
    struct Call;
    class Ticket;

    std::optional<Failure> Execute(Call& call);
    bool Wait(Call& call, Nanoseconds timeout);
    bool GiveUp(Call& call, std::unique_lock<std::mutex>& lock);
    // Whether the call before it is over in a moment by its own deadline. REQUIRES mutex_.
    bool EndsSoon(Call& call);
    static constexpr std::chrono::milliseconds kMoment{250};
    // Whether the queue's thread deletes the call, because it still has it.
    bool LeaveBehind(Call& call);
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
    const Nanoseconds look_;
    // A call that its caller is going to run, until it is taken: by the caller, or for the worker, because
    // another call was enqueued behind it.
    std::atomic<Call*> waiting_{nullptr};
    std::atomic<bool> caller_runs_{false};  // a call on its caller's thread
    std::atomic<int> queued_{0};            // calls of the worker that are not done

    std::mutex mutex_;
    std::condition_variable changed_;
    Call* first_ = nullptr;  // of those that wait for the worker
    Call* last_ = nullptr;
    Call* running_ = nullptr;  // on the worker
    // When the calls of the worker will have ended by their own deadlines, once there are any.
    Deadline::Clock::time_point busy_until_ = Deadline::Clock::time_point::min();
    bool stop_ = false;
    int threads_ = 0;  // that have not ended
    std::thread worker_;
    std::thread watch_;
  };

  // One call: its request's, and the queue's thread's while that has it.
  struct CallQueue::Call final : internal::Recycled<Call> {
    Call(const dtrun_op& given, int size) : op(given, size), running{&*op, LazyDeadline(given.timeout_ns)} {}

    Deadline::Clock::time_point deadline() { return running.deadline.Start().at(); }

    const OwnedOp op;  // the caller lends its arrays for the time of enqueue only
    Running running;
    Call* next = nullptr;              // behind it in the queue
    std::atomic<bool> queued{false};   // for the worker, with a deadline that has been started
    std::atomic<bool> started{false};  // keeps its own deadline from now on
    std::atomic<bool> done{false};
    std::optional<Failure> failure;  // written before done
    bool given_up = false;           // the same
    // With the queue's mutex:
    bool held = false;  // by the worker: waits for it, or runs on it
    bool left = false;  // the request is gone, although the worker holds it
  };

  class CallQueue::Ticket final : public Request, public internal::Recycled<Ticket> {
   public:
    Ticket(CallQueue& queue, const dtrun_op& op, int size)
        : call(std::make_unique<Call>(op, size)), queue_(queue) {}
    ~Ticket() override {
      try {
        queue_.Wait(*call, kNoLimit);
      } catch (const Failure&) {
        // The request was dropped without asking how it ended; the communicator knows.
      }
      if (queue_.LeaveBehind(*call)) static_cast<void>(call.release());
    }
    bool Test() override { return queue_.Wait(*call, Nanoseconds(0)); }
    bool Wait(Nanoseconds timeout) override { return queue_.Wait(*call, timeout); }

    std::unique_ptr<Call> call;

   private:
    CallQueue& queue_;
  };

  inline std::unique_ptr<Request> CallQueue::Enqueue(const dtrun_op& op) {
    const bool blocking = (op.flags & DTRUN_OP_BLOCKING) != 0;
    // In this order: a caller that takes its waiting call sets caller_runs_ first.
    if (blocking && queued_.load(std::memory_order_acquire) == 0 &&
        waiting_.load(std::memory_order_acquire) == nullptr &&
        !caller_runs_.load(std::memory_order_acquire)) {
      const bool entered = runner_.Begin(op);
      auto ticket = std::make_unique<Ticket>(*this, op, size_);
      Call& call = *ticket->call;
      call.running.entered = entered;
      if (entered && runner_.Ready()) {
        call.failure = Execute(call);
        call.done.store(true, std::memory_order_release);
      } else {
        waiting_.store(&call, std::memory_order_release);
      }
      return ticket;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    StartThreads(Deadline(Nanoseconds(op.timeout_ns)));
    auto ticket = std::make_unique<Ticket>(*this, op, size_);
    if (Call* const before = waiting_.exchange(nullptr)) Queue(*before);
    Queue(*ticket->call);
    return ticket;
  }

  inline bool CallQueue::Stop(Nanoseconds limit) {
    const Deadline end(limit);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      stop_ = true;
      changed_.notify_all();
      while (threads_ > 0) {
        if (end.passed()) return false;
        changed_.wait_until(lock, end.Soon(std::chrono::hours(1)));
      }
    }
    for (std::thread* const thread : {&worker_, &watch_}) {
      if (thread->joinable()) thread->join();
    }
    return true;
  }

  inline bool CallQueue::LeaveBehind(Call & call) {
    if (!call.given_up) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    return call.left = call.held;
  }

  inline void CallQueue::Start(std::thread & thread, void(CallQueue::*body)()) {
    if (thread.joinable()) return;
    const BlockSignals block;
    try {
      thread = std::thread([this, body] {
        const ThreadScope scope(host_, thread_);
        (this->*body)();
        const std::lock_guard<std::mutex> lock(mutex_);
        --threads_;
        changed_.notify_all();
      });
      ++threads_;
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
    call.held = true;
    call.queued.store(true, std::memory_order_release);
    queued_.fetch_add(1);
    changed_.notify_all();
  }

  inline std::optional<Failure> CallQueue::Execute(Call & call) {
    call.started.store(true, std::memory_order_relaxed);
    try {
      runner_.Run(call.running);
    } catch (const Failure& failure) {
      return failure;
    }
    return std::nullopt;
  }

  // One look at a call that is not done. REQUIRES mutex_, which it gives back for the time of the look.
  inline bool CallQueue::GiveUp(Call & call, std::unique_lock<std::mutex> & lock) {
    lock.unlock();
    std::optional<Failure> failure = runner_.GiveUp(call.running, call.started);
    lock.lock();
    if (!failure || call.done) return false;
    call.failure = std::move(failure);
    call.given_up = true;
    call.done.store(true, std::memory_order_release);
    changed_.notify_all();
    return true;
  }

  // Calls of one time limit end together, and the one that runs knows for whom it has waited.
  inline bool CallQueue::EndsSoon(Call & call) {
    const auto end =
        call.deadline() == Deadline::Clock::time_point::max() ? call.deadline() : call.deadline() + kMoment;
    return running_ != nullptr && running_->deadline() < end && Deadline::Clock::now() < end;
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
          call.failure = Execute(call);
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
        const bool queued = call.queued.load(std::memory_order_acquire);
        const bool behind = queued && !call.started;
        const bool over = behind && call.running.deadline.Passed();
        const bool soon = over && EndsSoon(call);
        if (over && !soon) runner_.Abandon(call.running);
        if (queued && look_ != kNoLimit && (GiveUp(call, lock) || call.done)) break;
        if (patience.Passed()) return false;
        const Nanoseconds most = look_ != kNoLimit ? look_ : std::chrono::hours(1);
        const Nanoseconds limit = patience.Left(soon     ? std::chrono::milliseconds(1)
                                                : behind ? call.running.deadline.Left(most)
                                                         : most);
        changed_.wait_for(lock, std::max<Nanoseconds>(limit, std::chrono::microseconds(50)));
      }
    }
    if (call.failure) throw Failure(*call.failure);
    return true;
  }

  inline void CallQueue::Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return (stop_ || first_ != nullptr) && !caller_runs_.load(); });
      if (first_ == nullptr) return;
      Call& call = *first_;
      first_ = call.next;
      if (first_ == nullptr) last_ = nullptr;
      std::optional<Failure> failure;
      if (!call.done) {  // else it was given up
        running_ = &call;
        lock.unlock();
        call.running.beside = true;
        failure = Execute(call);
        lock.lock();
        running_ = nullptr;
      }
      queued_.fetch_sub(1);
      call.held = false;
      if (call.left) {
        delete &call;
      } else if (!call.done) {
        call.failure = std::move(failure);
        call.done.store(true, std::memory_order_release);
      }
      changed_.notify_all();
    }
  }

  // A thread that looks at a waiting call does the same; this is for calls that no thread looks at.
  inline void CallQueue::Watch() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stop_) {
      Call* next = nullptr;  // the one with the earliest deadline
      for (Call* call = first_; call != nullptr; call = call->next) {
        if (next == nullptr || call->deadline() < next->deadline()) next = call;
      }
      const bool passed = next != nullptr && next->deadline() <= Deadline::Clock::now();
      const bool over = passed && !EndsSoon(*next);
      if (over) runner_.Abandon(next->running);  // what runs returns soon, and wakes this thread
      if (over || next == nullptr || next->deadline() == Deadline::Clock::time_point::max()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, passed ? next->deadline() + kMoment : next->deadline());
      }
    }
  }

}  // namespace v1
}  // namespace dtrun::sdk

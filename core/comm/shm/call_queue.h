// The calls of a communicator, one after another.
//
// A call that its caller waits for runs on the caller's thread when nothing stands before it;
// others run on a thread of the queue. Owned by a communicator, ShmCommunicator or the hierarchy's,
// and destroyed before what it runs calls on. Enqueue: one thread at a time; the rest: any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "core/comm/shm/group.h"
#include "dtrun/plugin.hpp"

namespace dtrun::shm {

class CallRequest;

// What a queue runs calls on.
class Runner {
 public:
  // Does what comes before the first wait for a peer, and returns whether there was any. Nothing
  // stands before the call. Throws as Run does.
  virtual bool Begin(const dtrun_op& op) {
    static_cast<void>(op);
    return false;
  }
  // Whether the call that has begun can run without waiting; looks for a moment only.
  virtual bool Ready() { return false; }
  // Throws sdk::Failure; the communicator has failed then.
  virtual void Run(Running& running) = 0;
  // The time of a call was up before its turn came: fails the communicator. Any thread.
  virtual void Abandon(const Running& running) = 0;

 protected:
  ~Runner() = default;
};

class CallQueue {
 public:
  // Of a communicator of `size` ranks; `thread` is a literal of at most 15 bytes.
  CallQueue(Runner& runner, const char* thread, int size) : runner_(runner), thread_(thread), size_(size) {}
  ~CallQueue();

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op);

 private:
  friend class CallRequest;

  void Execute(CallRequest& call);
  bool Wait(CallRequest& call, std::chrono::nanoseconds timeout);
  // Has the worker run `call`. REQUIRES mutex_.
  void Queue(CallRequest& call);
  void RunCalls();

  Runner& runner_;
  const char* const thread_;
  const int size_;
  // A call that its caller is going to run, until somebody takes it: the caller, or the worker
  // because another call stands behind it.
  std::atomic<CallRequest*> waiting_{nullptr};
  std::atomic<bool> caller_runs_{false};  // a call on its caller's thread
  std::atomic<int> queued_{0};            // calls of the worker that are not done

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CallRequest*> queue_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace dtrun::shm

// A communicator of the shared-memory engine: calls in order, messages beside them.
//
// A call that its caller waits for runs on the caller's thread when nothing stands before
// it; others run one after another on a thread of the communicator. Owned by whoever uses
// the backend table (core); thread classes as in dtrun/abi/backend.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/shm/collective.h"
#include "core/comm/shm/group.h"
#include "core/comm/shm/messages.h"
#include "dtrun/plugin.hpp"

namespace dtrun::shm {

class CallRequest;

class ShmCommunicator final : public sdk::Communicator<sdk::Request> {
 public:
  // `checks`: arguments come from somebody who has not checked them.
  ShmCommunicator(const sdk::Host& host, const sdk::CommParams& params, bool checks);
  ~ShmCommunicator() override;

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;
  void* MemAlloc(std::uint64_t bytes) override;
  void MemFree(void* memory) override;

 private:
  friend class CallRequest;

  void Check(const dtrun_op& op, const dtrun_stream* stream) const;
  void Execute(CallRequest& call);
  bool Wait(CallRequest& call, std::chrono::nanoseconds timeout);
  // Has the worker run `call`. REQUIRES mutex_.
  void Queue(CallRequest& call);
  void RunCalls();

  const bool checks_;
  Group group_;
  Collectives collectives_;
  Messages messages_;

  // A call that its caller is going to run, until somebody takes it: the caller, or the worker
  // because another call stands behind it.
  std::atomic<CallRequest*> waiting_{nullptr};
  std::atomic<bool> caller_runs_{false};  // a call on its caller's thread
  std::atomic<int> queued_{0};            // calls of the worker that are not done
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CallRequest*> queue_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace dtrun::shm

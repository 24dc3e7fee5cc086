// A collective between enqueue and its end.
//
// Shared by the request that core holds and the thread that carries it out. All methods: any
// thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "call.h"
#include "dtrun/plugin.hpp"
#include "mesh.h"
#include "timer.h"

namespace dtrun::gloo_plugin {

class CollectiveJob {
 public:
  // `op` is for a communicator of `ranks`.
  CollectiveJob(const dtrun_op& op, int ranks) : call(op, ranks), operation(op) {}

  const CollectiveCall call;
  Operation operation;

  // Fails the mesh at `deadline` unless Finish comes first. `timer` is null in a world of
  // one, where nothing waits.
  void Guard(Mesh& mesh, Timer* timer, const sdk::Deadline& deadline);
  // The outcome; nullopt: success.
  void Finish(std::optional<sdk::Failure> failure);
  // False when `deadline` came first. Throws the failure.
  bool Wait(const sdk::Deadline& deadline);
  // Waits without looking at the outcome.
  void WaitForEnd();
  // When Guard ends it; never without a timer.
  const sdk::Deadline& deadline() const { return deadline_; }

 private:
  sdk::Deadline deadline_;
  std::optional<TimerEntry> timeout_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  std::optional<sdk::Failure> failure_;
};

class GlooCommunicator;

class CollectiveRequest final : public sdk::Request {
 public:
  CollectiveRequest(GlooCommunicator& comm, std::shared_ptr<CollectiveJob> job)
      : comm_(comm), job_(std::move(job)) {}
  ~CollectiveRequest() override;

  bool Test() override;
  bool Wait(sdk::Nanoseconds timeout) override;

 private:
  GlooCommunicator& comm_;
  const std::shared_ptr<CollectiveJob> job_;
};

}  // namespace dtrun::gloo_plugin

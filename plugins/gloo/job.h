// A collective between enqueue and its end.
//
// Shared by the request that core holds and the worker that runs it. All methods: any
// thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "dtrun/plugin.hpp"
#include "mesh.h"
#include "timer.h"

namespace dtrun::gloo_plugin {

class CollectiveJob {
 public:
  dtrun_op op{};
  Operation operation;

  // Fails the mesh at `deadline` unless Finish comes first. `timer` is null in a world of
  // one, where nothing waits.
  void Guard(Mesh& mesh, Timer* timer, const Deadline& deadline);
  // The outcome; nullopt: success.
  void Finish(std::optional<sdk::Failure> failure);
  // False when `deadline` came first. Throws the failure.
  bool Wait(const Deadline& deadline);
  // Waits without looking at the outcome.
  void WaitForEnd();

 private:
  std::optional<TimerEntry> timeout_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  std::optional<sdk::Failure> failure_;
};

class CollectiveRequest final : public sdk::Request {
 public:
  explicit CollectiveRequest(std::shared_ptr<CollectiveJob> job) : job_(std::move(job)) {}
  ~CollectiveRequest() override { job_->WaitForEnd(); }

  bool Test() override { return job_->Wait(Deadline(sdk::Nanoseconds(0))); }
  bool Wait(sdk::Nanoseconds timeout) override { return job_->Wait(Deadline(timeout)); }

 private:
  const std::shared_ptr<CollectiveJob> job_;
};

}  // namespace dtrun::gloo_plugin

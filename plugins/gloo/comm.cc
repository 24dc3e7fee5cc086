#include "comm.h"

#include <optional>
#include <utility>

#include "dtrun/plugin/block_signals.hpp"
#include "job.h"
#include "p2p.h"
#include "signals.h"

namespace dtrun::gloo_plugin {

using sdk::Failure;

GlooCommunicator::GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                                   const interfaces::Interface& interface)
    : mesh_(host, params, interface) {
  if (mesh_.size() == 1) return;
  const sdk::BlockSignals block;
  worker_ = std::thread([this, host] { RunJobs(host); });
}

GlooCommunicator::~GlooCommunicator() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

std::unique_ptr<sdk::Request> GlooCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  mesh_.ThrowIfFailed();
  return sdk::IsCollective(op.kind) ? EnqueueCollective(op) : EnqueuePointToPoint(op);
}

std::unique_ptr<sdk::Request> GlooCommunicator::EnqueuePointToPoint(const dtrun_op& op) {
  {
    // The caller does something else than to wait for the job that was kept for it.
    const std::lock_guard lock(mutex_);
    Queue(std::exchange(kept_, nullptr));
  }
  return std::make_unique<PointToPointRequest>(mesh_, op);
}

std::unique_ptr<sdk::Request> GlooCommunicator::EnqueueCollective(const dtrun_op& op) {
  auto job = std::make_shared<CollectiveJob>(op, mesh_.size());
  last_enqueued_ = op.sequence;
  if (mesh_.size() == 1) {
    RunJob(*job);
  } else {
    job->Guard(mesh_, mesh_.timer(), sdk::Deadline(job->operation.timeout));
    const std::lock_guard lock(mutex_);
    Queue(std::exchange(kept_, nullptr));
    if ((op.flags & DTRUN_OP_BLOCKING) != 0 && !busy_ && jobs_.empty()) {
      kept_ = job;
    } else {
      Queue(job);
    }
  }
  return std::make_unique<CollectiveRequest>(*this, std::move(job));
}

// REQUIRES mutex_.
void GlooCommunicator::Queue(std::shared_ptr<CollectiveJob> job) {
  if (job == nullptr) return;
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void GlooCommunicator::HandOver(const std::shared_ptr<CollectiveJob>& job) {
  const std::lock_guard lock(mutex_);
  if (kept_ == job) Queue(std::exchange(kept_, nullptr));
}

bool GlooCommunicator::RunHere(const std::shared_ptr<CollectiveJob>& job) {
  {
    const std::lock_guard lock(mutex_);
    if (kept_ != job) return false;
    kept_ = nullptr;
    busy_ = true;
  }
  {
    const NoSigpipe quiet;
    RunJob(*job);
  }
  const std::lock_guard lock(mutex_);
  busy_ = false;
  if (!jobs_.empty()) changed_.notify_all();
  return true;
}

void GlooCommunicator::RunJobs(const sdk::Host& host) {
  const sdk::ThreadScope scope(host, "gloo-worker");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return (stop_ || !jobs_.empty()) && !busy_; });
    if (jobs_.empty()) return;
    const std::shared_ptr<CollectiveJob> job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    RunJob(*job);
    lock.lock();
    busy_ = false;
  }
}

void GlooCommunicator::RunJob(CollectiveJob& job) {
  last_started_ = job.call.op->sequence;
  std::optional<Failure> failure;
  try {
    mesh_.ThrowIfFailed();
    RunCollective(mesh_, job.operation, job.call);
    last_completed_ = job.call.op->sequence;
  } catch (const Failure& thrown) {
    failure = thrown;
  } catch (const std::bad_alloc&) {
    // Half done, so the other ranks cannot finish either.
    mesh_.Fail({DTRUN_OUT_OF_MEMORY, job.operation.text + " needs more memory than there is", -1, -1});
    failure = Failure(DTRUN_OUT_OF_MEMORY, job.operation.text + " needs more memory than there is");
  }
  job.Finish(std::move(failure));
}

void GlooCommunicator::Abort(const std::string& reason) {
  mesh_.Fail({DTRUN_ABORTED, "'" + mesh_.name() + "' was aborted: " + reason, -1, -1});
}

void GlooCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  sink.Line("collectives enqueued up to " + std::to_string(last_enqueued_) + ", started up to " +
            std::to_string(last_started_) + ", completed up to " + std::to_string(last_completed_));
  if (const auto cause = mesh_.cause()) sink.Line("failed: " + cause->text);
}

}  // namespace dtrun::gloo_plugin

#include "job.h"

#include <utility>

#include "comm.h"

namespace dtrun::gloo_plugin {

void CollectiveJob::Guard(Mesh& mesh, Timer* timer, const sdk::Deadline& deadline) {
  if (timer == nullptr) return;
  deadline_ = deadline;
  timeout_.emplace(*timer, deadline, [this, &mesh] { mesh.FailTimeout(operation); });
}

void CollectiveJob::Finish(std::optional<sdk::Failure> failure) {
  timeout_.reset();
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    done_ = true;
  }
  finished_.notify_all();
}

bool CollectiveJob::Wait(const sdk::Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (!finished_.wait_until(lock, deadline.at(), [this] { return done_; })) return false;
  if (failure_) throw *failure_;
  return true;
}

void CollectiveJob::WaitForEnd() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return done_; });
}

CollectiveRequest::~CollectiveRequest() {
  if (!comm_.RunHere(job_)) job_->WaitForEnd();
}

bool CollectiveRequest::Test() {
  comm_.HandOver(job_);
  return job_->Wait(sdk::Deadline(sdk::Nanoseconds(0)));
}

// Whoever waits at least as long as the operation may take can do it meanwhile.
bool CollectiveRequest::Wait(sdk::Nanoseconds timeout) {
  const sdk::Deadline deadline(timeout);
  if (deadline.at() < job_->deadline().at() || !comm_.RunHere(job_)) comm_.HandOver(job_);
  return job_->Wait(deadline);
}

}  // namespace dtrun::gloo_plugin

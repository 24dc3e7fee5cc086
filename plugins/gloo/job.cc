#include "job.h"

#include <utility>

namespace dtrun::gloo_plugin {

void CollectiveJob::Guard(Mesh& mesh, Timer* timer, const Deadline& deadline) {
  if (timer == nullptr) return;
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

bool CollectiveJob::Wait(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (!finished_.wait_until(lock, deadline.at(), [this] { return done_; })) return false;
  if (failure_) throw *failure_;
  return true;
}

void CollectiveJob::WaitForEnd() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return done_; });
}

}  // namespace dtrun::gloo_plugin

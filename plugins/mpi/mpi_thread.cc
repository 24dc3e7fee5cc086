#include "mpi_thread.h"

#include <thread>
#include <utility>

#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::mpi_plugin {

bool MpiThread::Run(const sdk::Host& host, std::function<void()> task, const sdk::Deadline& deadline) {
  const auto mine = std::make_shared<Task>();
  mine->run = std::move(task);
  std::unique_lock lock(mutex_);
  if (!started_) {
    const sdk::BlockSignals block;  // MPI's own threads inherit that
    std::thread([this, host] { Serve(host); }).detach();
    started_ = true;
  }
  tasks_.push_back(mine);
  changed_.notify_all();
  const auto done = [&] { return mine->done; };
  if (deadline.never()) {
    changed_.wait(lock, done);
  } else if (!changed_.wait_until(lock, deadline.at(), done)) {
    return false;
  }
  if (mine->error) std::rethrow_exception(mine->error);
  return true;
}

void MpiThread::Serve(const sdk::Host& host) {
  const sdk::ThreadScope scope(host, "dtrun-mpi");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    const std::shared_ptr<Task> task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    try {
      task->run();
    } catch (...) {
      task->error = std::current_exception();
    }
    lock.lock();
    task->done = true;
    changed_.notify_all();
  }
}

}  // namespace dtrun::mpi_plugin

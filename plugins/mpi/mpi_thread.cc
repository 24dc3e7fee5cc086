#include "mpi_thread.h"

#include <thread>
#include <utility>

#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::mpi_plugin {

bool MpiThread::Run(const sdk::Host& host, std::function<void()> task, const sdk::Deadline& deadline) {
  std::packaged_task<void()> mine(std::move(task));
  std::future<void> done = mine.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (!started_) {
      const sdk::BlockSignals block;  // MPI's own threads inherit that
      std::thread([this, host] { Serve(host); }).detach();
      started_ = true;
    }
    tasks_.push_back(std::move(mine));
  }
  added_.notify_one();
  if (!deadline.never() && done.wait_until(deadline.at()) != std::future_status::ready) return false;
  done.get();
  return true;
}

void MpiThread::Serve(const sdk::Host& host) {
  const sdk::ThreadScope scope(host, "dtrun-mpi");
  for (;;) {
    std::unique_lock lock(mutex_);
    added_.wait(lock, [this] { return !tasks_.empty(); });
    std::packaged_task<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace dtrun::mpi_plugin

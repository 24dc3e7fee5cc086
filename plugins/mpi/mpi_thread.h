// A thread that makes the MPI calls which may take as long as they like: starting and ending
// MPI, making communicators.
//
// Whoever asks can stop waiting; then the thread stays in the call, and the process goes on
// without it. One per process, never ends.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>

#include "dtrun/plugin.hpp"

namespace dtrun::mpi_plugin {

class MpiThread {
 public:
  MpiThread() = default;
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  // Runs `task` on the thread and waits, at most until `deadline`; false when that passed.
  // Throws what the task throws. What the task uses must live as long as the process.
  bool Run(const sdk::Host& host, std::function<void()> task, const sdk::Deadline& deadline);

 private:
  void Serve(const sdk::Host& host);

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::packaged_task<void()>> tasks_;
  bool started_ = false;
};

}  // namespace dtrun::mpi_plugin

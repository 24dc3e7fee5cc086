// MPI in this process: started once at most, ended only if it was started here.
//
// There is one World per process; it outlives the plugin's instances, because MPI cannot be
// started twice: what was started here ends when the process does. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/block_signals.hpp"
#include "library.h"

namespace dtrun::mpi_plugin {

// The choices of the option coll_sm; kApart is none: ranks of a host share no memory.
enum class CollSm { kAuto, kOn, kOff, kApart };

// A thread for the MPI calls that may take any time: starting and ending MPI, making communicators. The
// caller can stop waiting; then the thread stays in the call, and the process goes on without it. One per
// process at a time: starts with the first call, ends with End.
class MpiThread {
 public:
  MpiThread() = default;
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  // Runs `task` on the thread and waits, at most until `deadline`; false when that passed.
  // Throws what the task throws. What the task uses must live as long as the process.
  bool Run(const sdk::Host& host, std::function<void()> task, const sdk::Deadline& deadline) {
    std::packaged_task<void()> mine(std::move(task));
    std::future<void> done = mine.get_future();
    {
      const std::lock_guard lock(mutex_);
      if (!serves_) {
        const sdk::BlockSignals block;  // MPI's own threads inherit that
        thread_ = std::thread([this, host] { Serve(host); });
        serves_ = true;
      }
      tasks_.push_back(std::move(mine));
    }
    added_.notify_one();
    if (!deadline.never() && done.wait_until(deadline.at()) != std::future_status::ready) return false;
    done.get();
    return true;
  }

  // Ends the thread, unless it stays in a call. Not while another thread is in Run.
  void End(sdk::Nanoseconds patience) {
    std::unique_lock lock(mutex_);
    if (!serves_) return;
    ends_ = true;
    added_.notify_one();
    const bool ended = ended_.wait_for(lock, patience, [this] { return !serves_; });
    ends_ = false;
    lock.unlock();
    if (!thread_.joinable()) return;  // left in a call before
    if (ended) return thread_.join();
    thread_.detach();
  }

 private:
  void Serve(const sdk::Host& host) {
    const sdk::ThreadScope scope(host, "dtrun-mpi");
    for (;;) {
      std::unique_lock lock(mutex_);
      added_.wait(lock, [this] { return !tasks_.empty() || ends_; });
      if (tasks_.empty()) {
        serves_ = false;
        return ended_.notify_one();
      }
      std::packaged_task<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_, ended_;
  std::deque<std::packaged_task<void()>> tasks_;
  std::thread thread_;
  bool serves_ = false, ends_ = false;
};

class World {
 public:
  // Opens the library; throws when that is impossible or this process has opened another.
  static World& Open(const std::optional<std::string>& library);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Library& library() const { return library_; }
  const Api& api() const { return library_.api; }

  // Starts MPI unless it has been started. `local_ranks` as in CollSmVariables.
  void Start(const sdk::Host& host, CollSm coll_sm, int local_ranks, const sdk::Deadline& deadline);
  bool started() const { return started_.load(std::memory_order_acquire); }

  // Once started: this process in MPI_COMM_WORLD, and what MPI can do.
  int rank() const { return rank_; }
  int size() const { return size_; }
  int largest_tag() const { return largest_tag_; }
  const Combiners& combiners() const { return *combiners_; }
  // Null when any number of threads may call MPI at the same time; else to be held around
  // every call.
  std::timed_mutex* gate() { return serialized_ ? &gate_ : nullptr; }

  // MPI calls that may hang; see MpiThread.
  MpiThread& thread() { return thread_; }

  // Some communicator failed: peers may be gone, so ending MPI may take forever.
  void SetShaken() { shaken_.store(true, std::memory_order_release); }
  // A thread is left behind in MPI, which therefore cannot be ended.
  void SetStuck() { stuck_.store(true, std::memory_order_release); }
  bool stuck() const { return stuck_.load(std::memory_order_acquire); }
  // Whether MPI calls are still possible.
  bool usable() const;

 private:
  explicit World(const Library& library) : library_(library) {}
  void StartOnThread(CollSm coll_sm, int local_ranks);
  void FinishAtExit();

  const Library& library_;
  MpiThread thread_;
  std::mutex starting_;
  std::timed_mutex gate_;
  std::atomic<bool> started_{false};
  std::atomic<bool> shaken_{false};
  std::atomic<bool> stuck_{false};
  bool serialized_ = false;
  int rank_ = 0;
  int size_ = 1;
  int largest_tag_ = 0;
  std::optional<Combiners> combiners_;
  std::optional<sdk::Host> host_;
};

// Environment variables that switch Open MPI's shared-memory collectives on; empty when they are
// to be left alone, as when the user has set the first. `local_ranks`: how many ranks share this
// host, 0 when not all do.
struct Variable {
  const char* name;
  const char* value;
};
std::vector<Variable> CollSmVariables(CollSm coll_sm, int local_ranks);
// Whether coll/sm may serve: its ranks spin without yielding. Measured with 4 ranks on 2
// processors, 8 bytes took 100 µs instead of 1 to 20.
bool EachHasAProcessor(int local_ranks);
// What becomes of them, in words.
std::string CollSmText(const std::vector<Variable>& variables);

}  // namespace dtrun::mpi_plugin

// The collectives of a communicator, one after another in the order in which they came.
//
// A call that its caller will wait for at once runs on that caller's thread, others on a
// thread of the queue, which is made for the first of them. Before MPI is entered all ranks
// enter the entry barrier; while they do, a call can end with an error. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "collective.h"
#include "team.h"

namespace dtrun::mpi_plugin {

// A collective between enqueue and its end. The queue's mutex guards what is not atomic and
// changes.
struct Job {
  Job(const dtrun_op& given, int ranks) : op(given, ranks), timeout(given.timeout_ns) {}

  sdk::OwnedOp op;
  std::uint64_t number = 0;
  sdk::Nanoseconds timeout;
  // Set when it does not end at once: reading the clock costs as much as a small collective.
  std::optional<sdk::Deadline> deadline;

  enum class State { kQueued, kTaken, kDone };
  State state = State::kQueued;  // kTaken: offered to the thread that will wait, or running
  bool entered = false;          // the entry barrier; the running thread's
  std::atomic<bool> in_mpi{false};
  std::optional<sdk::Failure> failure;
};

class CollectiveQueue : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  CollectiveQueue(const sdk::Host& host, std::shared_ptr<Team> team, std::uint64_t limit, bool cuda)
      : host_(host), team_(std::move(team)), cuda_(cuda), collectives_(*team_, limit) {}

  // `offer`: the caller will wait at once.
  std::shared_ptr<Job> Add(const dtrun_op& op, bool offer);
  // False when it still runs after `timeout`. Throws the job's failure.
  bool Wait(const std::shared_ptr<Job>& job, sdk::Nanoseconds timeout);
  bool Test(const std::shared_ptr<Job>& job);
  // REQUIRES that no job is left. Ends the thread; false when it is left behind in MPI.
  bool Stop();

  std::uint64_t last_added() const { return added_; }
  std::uint64_t last_done() const { return done_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // With the lock held.
  void Queue(const std::shared_ptr<Job>& job);
  void EnsureWorker();
  bool Run(Job& job, sdk::Nanoseconds patience, Lock& lock);
  void Finish(Job& job, std::optional<sdk::Failure> failure);
  void Observe(Job& job, Lock& lock);
  void Work();

  // Without it. False: not all ranks have come within `patience`.
  bool Carry(Job& job, sdk::Nanoseconds patience);
  bool Enter(Job& job, sdk::Nanoseconds patience);
  bool EnterHolding(std::unique_lock<std::timed_mutex>& gate, Job& job, sdk::Nanoseconds patience);
  sdk::Deadline DeadlineOf(Job& job);
  bool MustEnter(Job& job, const sdk::Deadline& deadline);
  sdk::Failure TimeoutOf(const Job& job);

  const sdk::Host host_;
  const std::shared_ptr<Team> team_;
  const bool cuda_;  // operations may be in memory of CUDA
  Collectives collectives_;

  std::mutex mutex_;
  std::condition_variable work_;     // for the queue's thread alone
  std::condition_variable changed_;  // for those who wait
  std::deque<std::shared_ptr<Job>> queue_;
  std::shared_ptr<Job> offered_;
  bool running_ = false;  // some thread carries a job
  bool worker_ = false;   // the queue's thread lives
  bool stop_ = false;
  std::atomic<std::uint64_t> added_{0};
  std::atomic<std::uint64_t> done_{0};
};

class CollectiveRequest final : public sdk::Request {
 public:
  CollectiveRequest(std::shared_ptr<CollectiveQueue> queue, std::shared_ptr<Job> job)
      : queue_(std::move(queue)), job_(std::move(job)) {}
  ~CollectiveRequest() override;

  bool Test() override { return queue_->Test(job_); }
  bool Wait(sdk::Nanoseconds timeout) override { return queue_->Wait(job_, timeout); }

 private:
  const std::shared_ptr<CollectiveQueue> queue_;
  const std::shared_ptr<Job> job_;
};

}  // namespace dtrun::mpi_plugin

// The collectives of a communicator, one after another in the order in which they came.
//
// A call that its caller will wait for at once runs on that caller's thread, others on a
// thread of the line, which is made for the first of them. Before MPI is entered all ranks
// come to the meeting; while they do, a call can end with an error. Any thread.
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

// A collective between enqueue and its end. The line's mutex guards what is not atomic and
// changes.
struct Job {
  Call call;
  std::uint64_t number = 0;
  Deadline deadline;
  sdk::Nanoseconds timeout = sdk::kNoLimit;

  enum class State { kQueued, kOffered, kRunning, kDone };
  State state = State::kQueued;  // kOffered: for the thread that will wait
  bool come = false;             // to the meeting; the running thread's
  std::atomic<bool> in_mpi{false};
  std::optional<sdk::Failure> failure;
};

class Line : public std::enable_shared_from_this<Line> {
 public:
  Line(const sdk::Host& host, std::shared_ptr<Team> team, std::uint64_t limit)
      : host_(host), team_(std::move(team)), collectives_(*team_, limit) {}

  // `offer`: the caller will wait at once.
  std::shared_ptr<Job> Add(Call call, sdk::Nanoseconds timeout, bool offer);
  // False when it still runs at `until`. Throws the job's failure.
  bool Wait(const std::shared_ptr<Job>& job, const Deadline& until);
  bool Test(const std::shared_ptr<Job>& job);
  // REQUIRES that no job is left. Ends the thread, or leaves it behind in MPI.
  void Stop();

  std::uint64_t last_added() const { return added_; }
  std::uint64_t last_done() const { return done_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  // With the lock held.
  void Queue(const std::shared_ptr<Job>& job);
  void EnsureWorker();
  bool Run(Job& job, const Deadline& until, Lock& lock);
  void Finish(Job& job, std::optional<sdk::Failure> failure);
  void Observe(Job& job, Lock& lock);
  void Work();

  // Without it. False: not all ranks have come by `until`.
  bool Carry(Job& job, const Deadline& until);
  bool Meet(Job& job, const Deadline& until);
  bool MeetHolding(std::unique_lock<std::timed_mutex>& gate, Job& job, const Deadline& until);
  bool MustEnter(Job& job);
  sdk::Failure TimeoutOf(const Job& job);

  const sdk::Host host_;
  const std::shared_ptr<Team> team_;
  Collectives collectives_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::shared_ptr<Job> offered_;
  bool running_ = false;  // some thread carries a job
  bool worker_ = false;   // the line's thread lives
  bool stop_ = false;
  std::atomic<std::uint64_t> added_{0};
  std::atomic<std::uint64_t> done_{0};
};

class CollectiveRequest final : public sdk::Request {
 public:
  CollectiveRequest(std::shared_ptr<Line> line, std::shared_ptr<Job> job)
      : line_(std::move(line)), job_(std::move(job)) {}
  ~CollectiveRequest() override;

  bool Test() override { return line_->Test(job_); }
  bool Wait(sdk::Nanoseconds timeout) override { return line_->Wait(job_, Deadline(timeout)); }

 private:
  const std::shared_ptr<Line> line_;
  const std::shared_ptr<Job> job_;
};

}  // namespace dtrun::mpi_plugin

#include "collective_queue.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <random>
#include <thread>
#include <utility>

#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/cuda_scope.hpp"

namespace dtrun::mpi_plugin {
namespace {

using sdk::Failure;

// How often a sleeper looks around: for ranks that died, and aborts.
constexpr sdk::Nanoseconds kLook = std::chrono::milliseconds(20);
// What a call that is in MPI gets to come out, once the communicator has failed.
constexpr sdk::Nanoseconds kGrace = std::chrono::seconds(1);
// How long the gate of an MPI for one thread at a time is held for ranks that may come.
constexpr sdk::Nanoseconds kHold = std::chrono::microseconds(500);

// Looks before sleeping: some 20 µs, what a sleep and its end cost. Fewer when the ranks
// cannot all run at once.
int Looks(int size) {
  static const long processors = sysconf(_SC_NPROCESSORS_ONLN);  // not only those that this rank is bound to
  return size <= processors ? 300 : 20;
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

sdk::Nanoseconds RandomPause() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::chrono::microseconds(std::uniform_int_distribution<int>(50, 500)(random));
}

}  // namespace

CollectiveRequest::~CollectiveRequest() {
  try {
    queue_->Wait(job_, sdk::kNoLimit);
  } catch (const Failure&) {  // who drops a request does not ask how it ended
  }
}

std::shared_ptr<Job> CollectiveQueue::Add(const dtrun_op& op, bool offer) {
  auto job = std::make_shared<Job>(op, team_->size());
  Lock lock(mutex_);
  job->number = ++added_;
  if (team_->size() == 1) {
    Run(*job, sdk::kNoLimit, lock);
  } else if (offer && queue_.empty() && !running_ && !offered_) {
    job->state = Job::State::kTaken;
    offered_ = job;
  } else {
    if (offered_) Queue(std::exchange(offered_, nullptr));
    Queue(job);
  }
  return job;
}

void CollectiveQueue::Queue(const std::shared_ptr<Job>& job) {
  job->state = Job::State::kQueued;
  job->deadline = sdk::Deadline(job->timeout);
  queue_.push_back(job);
  EnsureWorker();
}

void CollectiveQueue::EnsureWorker() {
  if (!worker_) {
    const sdk::BlockSignals block;
    std::thread([self = shared_from_this()] { self->Work(); }).detach();
    worker_ = true;
  }
  work_.notify_one();
}

void CollectiveQueue::Work() {
  const sdk::ThreadScope scope(host_, "dtrun-mpi-calls");
  Lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || (!queue_.empty() && !running_); });
    if (queue_.empty() || running_) break;
    const std::shared_ptr<Job> job = queue_.front();
    queue_.pop_front();
    if (job->state != Job::State::kDone) Run(*job, sdk::kNoLimit, lock);
  }
  worker_ = false;
  changed_.notify_all();
}

bool CollectiveQueue::Run(Job& job, sdk::Nanoseconds patience, Lock& lock) {
  job.state = Job::State::kTaken;
  running_ = true;
  lock.unlock();
  bool ended = true;
  std::optional<Failure> failure;
  try {
    ended = Carry(job, patience);
  } catch (const Failure& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure = Failure(DTRUN_OUT_OF_MEMORY, sdk::OperationText(*job.op) + ": out of memory");
  } catch (const std::exception& error) {
    failure = Failure(DTRUN_INTERNAL, error.what());
  }
  if (failure) {
    team_->Fail(*failure);
    failure = *team_->failure();
  }
  lock.lock();
  job.in_mpi = false;
  running_ = false;
  if (ended) Finish(job, std::move(failure));
  if (!queue_.empty()) work_.notify_one();
  changed_.notify_all();
  return ended;
}

void CollectiveQueue::Finish(Job& job, std::optional<Failure> failure) {
  if (job.state == Job::State::kDone) return;  // given up before
  job.failure = std::move(failure);
  job.state = Job::State::kDone;
  if (!job.failure) done_ = job.number;
}

bool CollectiveQueue::Carry(Job& job, sdk::Nanoseconds patience) {
  std::unique_lock<std::timed_mutex> gate;
  if (team_->size() > 1) {
    team_->failure().ThrowIfSet();
    if (std::timed_mutex* const one_at_a_time = team_->world().gate()) {
      gate = std::unique_lock(*one_at_a_time, std::defer_lock);
      if (!EnterHolding(gate, job, patience)) return false;
    } else if (team_->entry() != nullptr && !Enter(job, patience)) {
      return false;
    }
    job.in_mpi = true;
  }
  sdk::CudaScope scope;
  if (cuda_) scope.Enter(sdk::CudaScope::ContextOf(job.op->recv != nullptr ? job.op->recv : job.op->send));
  collectives_.Run(*job.op);
  return true;
}

bool CollectiveQueue::Enter(Job& job, sdk::Nanoseconds patience) {
  EntryBarrier& entry = *team_->entry();
  if (!job.entered) {
    if (entry.Enter(job.number, sdk::SignatureOf(*job.op, team_->size()))) return true;
    job.entered = true;
  }
  for (int look = Looks(team_->size()); look > 0; --look) {
    if (entry.Ready(job.number)) return true;
    Pause();
  }
  const sdk::Deadline until(patience);
  const sdk::Deadline deadline = DeadlineOf(job);
  while (!entry.Ready(job.number)) {
    if (MustEnter(job, deadline)) return true;
    if (until.passed()) return false;
    entry.Sleep(job.number, std::min(until.at(), deadline.Soon(kLook)));
  }
  return true;
}

sdk::Deadline CollectiveQueue::DeadlineOf(Job& job) {
  const Lock lock(mutex_);
  if (!job.deadline) job.deadline = sdk::Deadline(job.timeout);
  return *job.deadline;
}

// Throws when the job cannot go on. True when it is too late for that.
bool CollectiveQueue::MustEnter(Job& job, const sdk::Deadline& deadline) {
  team_->CheckPeers(Team::kAll);
  if (!team_->failure() && deadline.passed()) team_->Fail(TimeoutOf(job));
  if (!team_->failure()) return false;
  if (job.entered && !team_->entry()->GoBack(job.number)) return true;
  throw Failure(*team_->failure());
}

// Of two communicators each rank could hold its gate for another one, for ever. So it is held
// for a moment only, and a rank that does not hold it has not come.
bool CollectiveQueue::EnterHolding(std::unique_lock<std::timed_mutex>& gate, Job& job,
                                   sdk::Nanoseconds patience) {
  EntryBarrier* const entry = team_->entry();
  const sdk::Deadline until(patience);
  const sdk::Deadline deadline = DeadlineOf(job);
  for (;;) {
    if (gate.try_lock_until(std::min(until.at(), deadline.Soon(kLook)))) {
      if (entry == nullptr || entry->Enter(job.number, sdk::SignatureOf(*job.op, team_->size()))) return true;
      const auto end = sdk::Deadline::Clock::now() + kHold;
      while (!entry->Ready(job.number) && sdk::Deadline::Clock::now() < end) entry->Sleep(job.number, end);
      if (!entry->GoBack(job.number)) return true;
      gate.unlock();
    }
    MustEnter(job, deadline);
    if (until.passed()) return false;
    std::this_thread::sleep_for(RandomPause());
  }
}

Failure CollectiveQueue::TimeoutOf(const Job& job) {
  int first = -1;
  std::string text = sdk::OperationText(*job.op) + " on '" + team_->name() + "' did not end within " +
                     sdk::DurationText(job.timeout);
  const std::string missing = job.in_mpi ? "" : team_->MissingRanks(job.number, &first);
  if (!missing.empty()) {
    text += ": still missing: " + missing;
  } else {
    text +=
        "; the call of MPI that it waits for cannot be cancelled, so '" + team_->name() + "' stays failed";
  }
  return Failure(DTRUN_TIMEOUT, text, first);
}

// One look at a job that another thread carries, or that waits in the queue.
void CollectiveQueue::Observe(Job& job, Lock& lock) {
  const bool late = job.deadline && job.deadline->passed();
  lock.unlock();
  team_->CheckPeers(Team::kNoPeer);
  if (!team_->failure() && late) team_->Fail(TimeoutOf(job));
  lock.lock();
  if (!team_->failure() || job.state == Job::State::kDone) return;
  if (job.state == Job::State::kQueued) {
    Finish(job, *team_->failure());
  } else if (job.in_mpi && sdk::Deadline::Clock::now() >= team_->failed_at() + kGrace) {
    team_->world().SetStuck();
    Finish(job, *team_->failure());
  }
}

bool CollectiveQueue::Wait(const std::shared_ptr<Job>& job, sdk::Nanoseconds timeout) {
  Lock lock(mutex_);
  if (offered_ == job) {
    offered_ = nullptr;
    if (!Run(*job, timeout, lock)) {
      job->state = Job::State::kQueued;
      queue_.push_front(job);
      EnsureWorker();
      return false;
    }
  }
  if (job->state != Job::State::kDone) {
    const sdk::Deadline until(timeout);
    for (;;) {
      Observe(*job, lock);
      if (job->state == Job::State::kDone) break;
      if (until.passed()) return false;
      const sdk::Deadline deadline = job->deadline.value_or(sdk::Deadline());
      changed_.wait_until(lock, std::min(until.at(), deadline.Soon(kLook)));
    }
  }
  if (job->failure) throw *job->failure;
  return true;
}

bool CollectiveQueue::Test(const std::shared_ptr<Job>& job) {
  {
    const Lock lock(mutex_);
    if (offered_ == job) Queue(std::exchange(offered_, nullptr));
  }
  return Wait(job, sdk::Nanoseconds(0));
}

bool CollectiveQueue::Stop() {
  Lock lock(mutex_);
  stop_ = true;
  work_.notify_one();
  const bool ended = changed_.wait_for(lock, kGrace, [this] { return !worker_; });
  if (!ended) team_->world().SetStuck();
  return ended;
}

}  // namespace dtrun::mpi_plugin

#include "engine.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "dtrun/plugin/block_signals.hpp"
#include "messenger.h"
#include "process.h"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

// How long the engine's thread keeps away after a caller drove.
constexpr std::chrono::milliseconds kKeepAway{1};
constexpr std::chrono::milliseconds kWhileCallersDrive{5};
constexpr std::chrono::seconds kClosePatience{2};

// Processors that the ranks of this host have together: where dtrun binds each rank to fewer,
// it says so.
int Processors() {
  const char* const together = std::getenv("DTRUN_LOCAL_PROCESSORS");
  if (together != nullptr && std::atoi(together) > 0) return std::atoi(together);
  cpu_set_t own;
  return sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 0;
}

bool Crowded(const sdk::CommParams& params) {
  const int hosts = std::max(1, params.host_count);
  return (params.size + hosts - 1) / hosts > Processors();
}

int MakeBell() {
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) throw Failure(DTRUN_SYSTEM, std::string("make an eventfd: ") + std::strerror(errno));
  return bell;
}

}  // namespace

Engine::Engine(const sdk::Host& host, const sdk::CommParams& params, std::shared_ptr<Context> context)
    : host_(host),
      context_(std::move(context)),
      roster_(params),
      messenger_(std::make_unique<WorkerMessenger>(*this)),
      worker_(*context_, params.rank, params.size, [this](int peer) { return AddressOf(peer); }),
      bell_(MakeBell()),
      crowded_(Crowded(params)),
      nap_(kFirstNap),
      check_interval_(kFirstCheck),
      seen_left_(static_cast<std::size_t>(params.size)) {
  try {
    roster_.Join({ProcessIdentity(), worker_.Address()});
    const sdk::BlockSignals block;
    thread_ = std::thread([this] { Own(); });
  } catch (...) {
    close(bell_);
    throw;
  }
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    Ring();
    owner_wakes_.notify_all();
  }
  thread_.join();
  try {
    if (!failed_) roster_.Leave();
    if (!shut_) worker_.Close(Clock::now() + kClosePatience);
  } catch (const Failure& failure) {
    sdk::Log(host_, "ucx").Debug(std::string("leaving '") + roster_.name() + "': " + failure.what());
  }
  for (const Watch& watch : watches_) close(watch.descriptor);
  close(bell_);
}

// ---- callers -------------------------------------------------------------------------

void Engine::Submit(std::shared_ptr<Operation> operation) {
  const std::lock_guard lock(mutex_);
  if (cause_) cause_->Throw();
  const bool blocking = operation->blocking();
  submitted_.push_back(std::move(operation));
  if (blocking) return;  // its caller drives
  Ring();
  if (!driving_) owner_wakes_.notify_one();
}

bool Engine::Wait(Operation& operation, sdk::Nanoseconds timeout) {
  if (!operation.done.load(std::memory_order_acquire)) {
    const sdk::Deadline until(timeout);
    // Whoever drives cannot stop in the middle of a collective.
    const bool may_drive = operation.blocking() && until.at() >= operation.deadline.at();
    std::unique_lock lock(mutex_);
    while (!operation.done) {
      if (may_drive && !driving_) {
        driving_ = true;
        ++calls_;
        lock.unlock();
        DriveWhile(&operation);
        lock.lock();
        driving_ = false;
        if (waiters_ > 0) changed_.notify_all();
        if (Pending() || !submitted_.empty()) {
          left_behind_ = true;
          owner_wakes_.notify_one();
        }
        continue;
      }
      if (operation.blocking() && !may_drive) {  // the wait is too short to drive
        left_behind_ = true;
        Ring();
        owner_wakes_.notify_one();
      }
      if (until.passed()) return false;
      ++waiters_;
      if (may_drive) {
        ++wanting_;
        Ring();
      }
      if (until.never()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, until.at());
      }
      if (may_drive) --wanting_;
      --waiters_;
    }
  }
  if (operation.failure) throw *operation.failure;
  return true;
}

void Engine::WaitForEnd(Operation& operation) noexcept {
  try {
    Wait(operation, sdk::kNoLimit);
  } catch (const Failure&) {
    // The outcome of a request that core drops interests nobody; the end of it does.
  }
}

void Engine::Fail(Cause cause) {
  const std::lock_guard lock(mutex_);
  if (cause_) return;
  cause_ = std::move(cause);
  failed_ = true;
  Ring();
  owner_wakes_.notify_one();
}

std::vector<std::string> Engine::Lines() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines = {doing_.empty() ? "idle" : doing_};
  if (!submitted_.empty())
    lines.push_back(std::to_string(submitted_.size()) + " operations not yet looked at");
  if (!routes_.empty()) lines.push_back(routes_);
  if (cause_) lines.push_back("failed: " + cause_->text);
  return lines;
}

// Ends the sleep of the thread that drives, if it sleeps. REQUIRES mutex_.
void Engine::Ring() {
  if (!sleeping_) return;
  const std::uint64_t one = 1;
  while (write(bell_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

// ---- the engine's own thread ---------------------------------------------------------

void Engine::Own() {
  const sdk::ThreadScope scope(host_, "ucx-owner");
  std::unique_lock lock(mutex_);
  std::uint64_t seen_calls = 0;
  while (!stop_) {
    if (driving_) {
      owner_wakes_.wait_for(lock, kWhileCallersDrive);
      continue;
    }
    if (ended_ && submitted_.empty()) {
      owner_wakes_.wait(lock);
      continue;
    }
    if (!HasWork() && (calls_ != seen_calls || wanting_ > 0 || !submitted_.empty())) {
      seen_calls = calls_;
      owner_wakes_.wait_for(lock, kKeepAway);
      continue;
    }
    driving_ = true;
    lock.unlock();
    DriveWhile(nullptr);
    lock.lock();
    driving_ = false;
    if (waiters_ > 0) changed_.notify_all();
    seen_calls = calls_;
  }
}

// Whether there is something for the engine's own thread: what is blocking is its caller's, unless
// he went away. REQUIRES mutex_, by the thread that drives or when nobody does.
bool Engine::HasWork() const {
  return left_behind_ || Pending() || (failed_ && !ended_) ||
         std::any_of(submitted_.begin(), submitted_.end(),
                     [](const auto& operation) { return !operation->blocking(); });
}

}  // namespace dtrun::ucx_plugin

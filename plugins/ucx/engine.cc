#include "engine.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "messenger.h"
#include "process.h"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

// How long a thread that drives looks for work before it sleeps.
constexpr std::chrono::microseconds kSpin{100};
constexpr std::chrono::microseconds kCrowdedSpin{10};
// After so long it offers its core to others: the peer may be waiting for just that one.
constexpr std::chrono::microseconds kAlone{20};
// How long the engine's thread keeps away after a caller drove.
constexpr std::chrono::milliseconds kKeepAway{1};
constexpr std::chrono::milliseconds kWhileCallersDrive{5};
// How often the store is asked for the others' health while something is pending.
constexpr std::chrono::milliseconds kFirstCheck{100};
constexpr std::chrono::milliseconds kLastCheck{1000};
// Busy turns between two looks at the clock.
constexpr int kTurnsPerLook = 64;
// UCX's shared memory wakes who waits for a message, but not who waits for room to send one; so
// while there are messages to send, sleep is short.
constexpr std::chrono::microseconds kFirstNap{50};
constexpr std::chrono::microseconds kLastNap{1000};
// As rarely the answer to a message that is coming in finds no room.
constexpr std::chrono::milliseconds kLongNap{20};
constexpr std::chrono::seconds kShutPatience{5};
constexpr std::chrono::seconds kClosePatience{2};

bool Crowded(const sdk::CommParams& params) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return true;
  const int hosts = std::max(1, params.host_count);
  return (params.size + hosts - 1) / hosts > CPU_COUNT(&cores);
}

int MakeBell() {
  const int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (bell < 0) throw Failure(DTRUN_SYSTEM, std::string("make an eventfd: ") + std::strerror(errno));
  return bell;
}

// A thread started while it lives takes no signals: they are the program's.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// How long nothing has happened.
class Engine::Idle {
 public:
  void Reset() { turns_ = 0; }
  // False once it is time to sleep.
  bool Spin(bool crowded) {
    const auto now = Clock::now();
    if (turns_++ == 0) began_ = now;
    if (now - began_ >= (crowded ? kCrowdedSpin : kSpin)) return false;
    if (crowded || now - began_ >= kAlone) sched_yield();
    return true;
  }
  // True now and then while there is always something to do.
  bool TimeToLook() { return ++busy_ % kTurnsPerLook == 0; }

 private:
  int turns_ = 0;
  int busy_ = 0;
  Clock::time_point began_;
};

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
    const BlockSignals block;
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
  const bool blocking = operation->blocking;
  submitted_.push_back(std::move(operation));
  if (blocking) return;  // its caller drives
  Ring();
  if (!driving_) owner_wakes_.notify_one();
}

bool Engine::Wait(Operation& operation, sdk::Nanoseconds timeout) {
  if (!operation.done.load(std::memory_order_acquire)) {
    const Clock::time_point until = After(timeout);
    // Whoever drives cannot stop in the middle of a collective.
    const bool may_drive = operation.blocking && until >= operation.deadline;
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
      if (operation.blocking && !may_drive) {  // the wait is too short to drive
        left_behind_ = true;
        Ring();
        owner_wakes_.notify_one();
      }
      if (timeout.count() >= 0 && Clock::now() >= until) return false;
      ++waiters_;
      if (may_drive) {
        ++wanting_;
        Ring();
      }
      if (until == kNever) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, until);
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
                     [](const auto& operation) { return !operation->blocking; });
}

// ---- the thread that drives ----------------------------------------------------------

// Until `wanted` is done, or (null) until a caller wants to drive or the engine stops.
void Engine::DriveWhile(const Operation* wanted) {
  Idle idle;
  for (;;) {
    if (wanted != nullptr && wanted->done) return;
    if (failed_ && !ended_) CompleteAllFailed();
    if (!jobs_.empty()) {
      const std::shared_ptr<Operation> job = std::move(jobs_.front());
      jobs_.pop_front();
      RunJob(job);
      idle.Reset();
      continue;
    }
    if (wanted == nullptr) {
      const std::lock_guard lock(mutex_);
      if (stop_ || (ended_ && submitted_.empty())) return;
      if (!HasWork() && (wanting_ > 0 || !submitted_.empty())) return;
    }
    Turn(idle);
  }
}

// One look at everything; sleeps when there has been nothing for a while.
void Engine::Turn(Idle& idle) {
  TakeSubmitted();
  const bool busy = !shut_ && worker_.Progress();
  ReapMessages();
  CheckLost();
  if (busy) {
    nap_ = kFirstNap;
    idle.Reset();
    if (idle.TimeToLook()) CheckTimes();
    return;
  }
  if (Pending() && idle.Spin(crowded_)) return;
  CheckTimes();
  Sleep();
}

void Engine::TakeSubmitted() {
  for (;;) {
    std::shared_ptr<Operation> operation;
    {
      const std::lock_guard lock(mutex_);
      if (submitted_.empty()) {
        left_behind_ = false;
        return;
      }
      operation = std::move(submitted_.front());
      submitted_.pop_front();
      doing_ = operation->text;
    }
    if (failed_) {
      jobs_.push_back(operation);
      ended_ = false;
      continue;
    }
    if (!Pending()) {
      check_interval_ = kFirstCheck;
      next_check_ = Clock::now() + check_interval_;
    }
    next_deadline_ = std::min(next_deadline_, operation->deadline);
    if (operation->collective) {
      jobs_.push_back(std::move(operation));
    } else {
      StartMessage(operation);
    }
  }
}

void Engine::StartMessage(const std::shared_ptr<Operation>& operation) {
  const dtrun_op& op = operation->op;
  Transfer& transfer = operation->transfer;
  transfer.peer = op.peer;
  transfer.bytes = op.count;  // bytes: the communicator has multiplied
  transfer.owner = operation.get();
  transfer.report = true;
  messages_.push_back(operation);
  try {
    if (op.kind == DTRUN_SEND) {
      worker_.Send(transfer, MakeTag(TagUse::kMessage, roster_.rank(), op.tag), op.send);
    } else {
      const bool anyone = op.peer == DTRUN_ANY_SOURCE;
      worker_.Recv(transfer, MakeTag(TagUse::kMessage, anyone ? 0 : op.peer, op.tag),
                   anyone ? kAnySender : kWholeTag, op.recv);
    }
  } catch (const Failure& failure) {
    Fail({failure.code(), operation->text + ": " + failure.what(), failure.peer()});
  }
}

void Engine::ReapMessages() {
  for (Transfer* transfer : worker_.TakeFinished()) {
    if (failed_) return;  // CompleteAllFailed ends them
    auto& operation = *static_cast<Operation*>(transfer->owner);
    try {
      CheckTransfer(*transfer, operation.text);
    } catch (const Failure&) {
      return;  // noted as the cause
    }
    if (operation.op.kind == DTRUN_RECV && operation.op.source != nullptr) {
      *operation.op.source = SenderOf(transfer->info.sender_tag);
    }
    const auto at = std::find_if(messages_.begin(), messages_.end(),
                                 [&](const auto& other) { return other.get() == &operation; });
    const std::shared_ptr<Operation> keep = std::move(*at);
    messages_.erase(at);
    Complete(operation, std::nullopt);
  }
}

void Engine::RunJob(const std::shared_ptr<Operation>& job) {
  current_ = job;
  {
    const std::lock_guard lock(mutex_);
    doing_ = job->text;
  }
  std::optional<Failure> failure;
  try {
    algorithms::RunCollective(*messenger_, job->op);
  } catch (const Failure& thrown) {
    Fail({thrown.code(), job->text + ": " + thrown.what(), thrown.peer()});
  } catch (const std::bad_alloc&) {
    // Half done, so the other ranks cannot finish either.
    Fail({DTRUN_OUT_OF_MEMORY, job->text + " needs more memory than there is"});
  }
  awaited_ = -1;
  if (failed_) {
    // Even when its own part is complete: one cause for all that is pending.
    jobs_.push_front(std::exchange(current_, nullptr));
    return;
  }
  current_ = nullptr;
  check_interval_ = kFirstCheck;
  next_check_ = Clock::now() + check_interval_;
  if (!routes_told_) TellRoutes();
  Complete(*job, std::nullopt);
}

// What UCX really chose is known once messages have gone.
void Engine::TellRoutes() {
  std::set<std::string> routes;
  for (int peer = 0; peer < roster_.size(); ++peer) {
    if (peer != roster_.rank()) routes.insert(worker_.Route(peer));
  }
  routes.erase("");
  if (routes.empty()) return;
  routes_told_ = true;
  std::string text = "'" + roster_.name() + "' exchanges messages over";
  for (const std::string& route : routes) text += (route == *routes.begin() ? " " : " and ") + route;
  sdk::Log(host_, "ucx").Info(text);
  const std::lock_guard lock(mutex_);
  routes_ = std::move(text);
}

void Engine::Await(const Transfer& transfer) {
  if (!transfer.done) {
    awaited_ = transfer.peer;
    Idle idle;
    while (!transfer.done) {
      if (failed_) break;
      Turn(idle);
    }
  }
  if (failed_) {
    std::unique_lock lock(mutex_);
    const Cause cause = *cause_;
    lock.unlock();
    cause.Throw();
  }
  CheckTransfer(transfer, current_->text);
}

// Throws, and fails the communicator, unless the message ended as it should.
void Engine::CheckTransfer(const Transfer& transfer, const std::string& text) {
  const std::string rank =
      "rank " + std::to_string(transfer.sending || transfer.peer >= 0 ? transfer.peer
                                                                      : SenderOf(transfer.info.sender_tag));
  const bool mismatch =
      transfer.status == UCS_ERR_MESSAGE_TRUNCATED ||
      (transfer.status == UCS_OK && !transfer.sending && transfer.info.length != transfer.bytes);
  if (transfer.status == UCS_OK && !mismatch) return;
  Cause cause;
  if (const std::optional<Cause> theirs = failed_ ? std::nullopt : roster_.TheirFailure()) {
    cause = *theirs;
  } else if (mismatch) {
    cause = {DTRUN_INVALID_ARGUMENT,
             text + ": " + rank + " sent " + std::to_string(transfer.info.length) + " bytes where " +
                 std::to_string(transfer.bytes) + " were expected; the ranks disagree on count or type",
             transfer.peer};
  } else if (!failed_ && transfer.peer >= 0 && roster_.HasLeft(transfer.peer)) {
    cause = roster_.LeftCause(transfer.peer);
  } else {
    cause = {DTRUN_REMOTE_FAILURE,
             text + ": lost " + rank + ": " + worker_.library().StatusText(transfer.status) +
                 "; look at that rank's output and host",
             transfer.peer};
  }
  Fail(cause);
  std::unique_lock lock(mutex_);
  cause = *cause_;
  lock.unlock();
  cause.Throw();
}

std::string Engine::AddressOf(int peer) {
  std::optional<Roster::Place> place = roster_.PlaceOf(peer);
  if (!place) return "";
  const bool watched =
      std::any_of(watches_.begin(), watches_.end(), [=](const Watch& one) { return one.peer == peer; });
  const int watch = watched ? -1 : WatchProcess(place->process);
  if (watch >= 0) watches_.push_back({peer, watch});
  return std::move(place->address);
}

void Engine::CheckLost() {
  while (const std::optional<Worker::Lost> lost = worker_.TakeLost()) {
    Lose(lost->peer, "lost the connection to rank " + std::to_string(lost->peer) + ": " +
                         worker_.library().StatusText(lost->status));
  }
}

void Engine::CheckProcesses() {
  for (std::size_t i = 0; i < watches_.size();) {
    const Watch watch = watches_[i];
    pollfd ended{watch.descriptor, POLLIN, 0};
    if (poll(&ended, 1, 0) != 1) {
      ++i;
      continue;
    }
    close(watch.descriptor);
    watches_.erase(watches_.begin() + static_cast<std::ptrdiff_t>(i));
    Lose(watch.peer, "the process of rank " + std::to_string(watch.peer) + " has ended");
  }
}

// A rank that is gone is a failure, unless it had left in peace; who still waits for it will learn
// that from CheckPeers.
void Engine::Lose(int peer, const std::string& how) {
  if (failed_) return;
  try {
    if (std::optional<Cause> theirs = roster_.TheirFailure()) {
      Fail(std::move(*theirs));
    } else if (!roster_.HasLeft(peer)) {
      Fail({DTRUN_REMOTE_FAILURE, how + "; look at that rank's output and host", peer});
    } else {
      next_check_ = Clock::now();
    }
  } catch (const Failure& failure) {
    Fail({DTRUN_REMOTE_FAILURE, how + ", and the store does not answer: " + failure.what(), peer});
  }
}

void Engine::CheckTimes() {
  if (failed_ || !Pending()) return;
  const auto now = Clock::now();
  if (now >= next_deadline_) {
    next_deadline_ = kNever;
    std::vector<const Operation*> all;
    if (current_) all.push_back(current_.get());
    for (const auto& job : jobs_) all.push_back(job.get());
    for (const auto& message : messages_) all.push_back(message.get());
    for (const Operation* one : all) {
      next_deadline_ = std::min(next_deadline_, one->deadline);
      if (now < one->deadline) continue;
      const bool queued = current_ && one != current_.get() && one->collective;
      const int peer = one->collective ? awaited_ : one->op.peer;
      std::string text = one->text + " did not finish within " + DurationText(one->timeout);
      if (queued) text += ", behind " + current_->text;
      if (peer >= 0) text += "; this rank waits for rank " + std::to_string(peer);
      return Fail({DTRUN_TIMEOUT, text + "; see what that rank is doing, or raise backend.timeout", peer});
    }
  }
  if (now < next_check_) return;
  CheckProcesses();
  CheckPeers();
}

void Engine::CheckPeers() {
  check_interval_ = std::min<sdk::Nanoseconds>(check_interval_ * 2, kLastCheck);
  next_check_ = Clock::now() + check_interval_;
  try {
    if (std::optional<Cause> theirs = roster_.TheirFailure()) return Fail(std::move(*theirs));
    std::set<int> awaited;
    if (awaited_ >= 0) awaited.insert(awaited_);
    for (const auto& message : messages_) {
      if (message->op.peer >= 0) awaited.insert(message->op.peer);
    }
    for (const int peer : awaited) {
      if (!roster_.HasLeft(peer)) continue;
      // What it sent last may still be on its way.
      if (++seen_left_[static_cast<std::size_t>(peer)] >= 2) return Fail(roster_.LeftCause(peer));
      next_check_ = Clock::now() + kFirstCheck;
    }
  } catch (const Failure& failure) {
    Fail({failure.code(), std::string("the store does not answer: ") + failure.what()});
  }
}

void Engine::Sleep() {
  if (!shut_ && !worker_.Arm()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!submitted_.empty() || stop_ || (failed_ && !ended_) || (wanting_ > 0 && !Pending())) return;
    sleeping_ = true;
  }
  std::vector<pollfd> waits = {pollfd{bell_, POLLIN, 0}};
  if (!shut_) {
    waits.push_back({worker_.event_fd(), POLLIN, 0});
    for (const Watch& watch : watches_) waits.push_back({watch.descriptor, POLLIN, 0});
  }
  sdk::Nanoseconds left = std::chrono::hours(1);
  if (Pending()) {
    const Clock::time_point wake = std::min(next_deadline_, next_check_);
    if (wake != kNever) left = std::clamp<sdk::Nanoseconds>(wake - Clock::now(), sdk::Nanoseconds(0), left);
    if (worker_.HasSends()) {
      left = std::min<sdk::Nanoseconds>(left, nap_);
      nap_ = std::min<sdk::Nanoseconds>(nap_ * 2, kLastNap);
    } else if (worker_.HasMessages()) {
      left = std::min<sdk::Nanoseconds>(left, kLongNap);
    }
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec limit{seconds.count(), (left - seconds).count()};
  ppoll(waits.data(), waits.size(), &limit, nullptr);
  if (std::any_of(waits.begin() + 1, waits.end(),
                  [&](const pollfd& one) { return one.fd != worker_.event_fd() && one.revents != 0; })) {
    CheckProcesses();
  }
  const std::lock_guard lock(mutex_);
  sleeping_ = false;
  std::uint64_t rings = 0;
  while (read(bell_, &rings, sizeof rings) < 0 && errno == EINTR) {
  }
}

void Engine::Complete(Operation& operation, std::optional<Failure> failure) {
  const std::lock_guard lock(mutex_);
  operation.failure = std::move(failure);
  operation.done.store(true, std::memory_order_release);
  if (!Pending()) doing_.clear();
  if (waiters_ > 0) changed_.notify_all();
}

void Engine::Shut() noexcept {
  try {
    if (failed_ && !told_) {
      told_ = true;
      std::unique_lock lock(mutex_);
      const Cause cause = *cause_;
      lock.unlock();
      if (cause.code == DTRUN_REMOTE_FAILURE && cause.peer >= 0)
        sdk::Health(host_).ReportPeer(cause.peer, cause.text);
      // Before the connections break: who sees them break looks for the reason.
      if (!cause.theirs) roster_.PublishFailure(cause);
    }
  } catch (const Failure& failure) {
    sdk::Log(host_, "ucx").Warn(std::string("cannot tell the other ranks: ") + failure.what());
  }
  if (shut_) return;
  shut_ = true;
  if (!worker_.Shut(Clock::now() + kShutPatience)) {
    sdk::Log(host_, "ucx")
        .Error("UCX has not let go of all messages of '" + roster_.name() +
               "' within 5 s; end this process before their buffers are used again");
  }
}

void Engine::CompleteAllFailed() {
  Shut();
  ended_ = true;
  std::unique_lock lock(mutex_);
  const Failure failure(cause_->code, cause_->text, cause_->peer);
  lock.unlock();
  for (const auto& job : std::exchange(jobs_, {})) Complete(*job, failure);
  for (const auto& message : messages_) Complete(*message, failure);
  // Kept: UCX may not have let go of them.
  std::move(messages_.begin(), messages_.end(), std::back_inserter(buried_));
  messages_.clear();
}

}  // namespace dtrun::ucx_plugin

// The thread that drives an Engine: operations in order, messages at once, sleep when there is nothing to do.
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "dtrun/kernels.hpp"
#include "engine.h"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

// How long a thread that drives looks for work before it sleeps.
constexpr std::chrono::microseconds kSpin{100};
constexpr std::chrono::microseconds kOversubscribedSpin{10};
// After so long it offers its core to others: the peer may be waiting for just that one.
constexpr std::chrono::microseconds kAlone{20};
// Busy turns between two looks at the clock.
constexpr int kTurnsPerLook = 64;
constexpr std::chrono::seconds kShutPatience{5};
// UCX's shared memory wakes a thread that waits for a message, but not one that waits for room to send; so
// while there are messages to send, sleep is short.
constexpr std::chrono::microseconds kLastNap{1000};
// As rarely, the answer to a message that is coming in finds no room.
constexpr std::chrono::milliseconds kLongNap{20};

// Parts go straight from buffer to buffer, a rank's own part as a message to itself. The SDK's broadcast
// sends from its buffer and receives into it, and does nothing else.
void RunOnDevices(WorkerMessenger& messenger, const dtrun_op& op) {
  if (op.kind == DTRUN_BROADCAST) return algorithms::RunCollective(messenger, op);
  const int rank = messenger.rank();
  const int size = messenger.size();
  const std::size_t width = kernels::ElementBytes(op.dtype);
  const sdk::Parts gives = sdk::InBytes(sdk::SendParts(op, rank, size), width);
  const sdk::Parts takes = sdk::InBytes(sdk::RecvParts(op, rank, size), width);
  std::vector<algorithms::Messenger::Message> messages;
  try {
    // Every rank begins with another one.
    for (int step = 0; step < 2 * size; ++step) {
      const int peer = (rank + step % size) % size;
      const auto index = static_cast<std::size_t>(peer);
      const bool receives = step < size;
      const sdk::Part& part = receives ? takes[index] : gives[index];
      if (part.size == 0) continue;
      void* const to = sdk::At(op.recv, takes[index].begin, 1);
      const void* const from = sdk::At(op.send, gives[index].begin, 1);
      if (peer == rank && to == from) continue;  // in place
      messages.push_back(receives ? messenger.Recv(peer, to, part.size)
                                  : messenger.Send(peer, from, part.size));
    }
    for (const algorithms::Messenger::Message message : messages) {
      if (message != nullptr) messenger.Wait(message);
    }
  } catch (...) {
    messenger.Cancel();
    throw;
  }
}

}  // namespace

// How long nothing has happened.
class Engine::Idle {
 public:
  void Reset() { turns_ = 0; }
  // False once it is time to sleep.
  bool Spin(bool oversubscribed) {
    const auto now = Clock::now();
    if (turns_++ == 0) began_ = now;
    if (now - began_ >= (oversubscribed ? kOversubscribedSpin : kSpin)) return false;
    if (oversubscribed || now - began_ >= kAlone) sched_yield();
    return true;
  }
  // True now and then while there is always something to do.
  bool TimeToLook() { return ++busy_ % kTurnsPerLook == 0; }

 private:
  int turns_ = 0;
  int busy_ = 0;
  Clock::time_point began_;
};

// Until `wanted` is done, or (null) until a caller wants to drive or the engine stops.
void Engine::DriveWhile(const Operation* wanted) {
  cuda_.Enter(cuda_context_);
  Drive(wanted);
  cuda_.Leave();
}

void Engine::Drive(const Operation* wanted) {
  Idle idle;
  for (;;) {
    if (failure_ && !ended_) CompleteAllFailed();
    if (wanted != nullptr && wanted->done) return;
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
  bool busy = !shut_ && worker_.Progress();
  busy = ReapMessages() || busy;
  watch_.CheckConnections(worker_);
  if (busy) {
    nap_ = kFirstNap;
    idle.Reset();
    if (idle.TimeToLook()) CheckTimes();
    return;
  }
  if (Pending() && idle.Spin(oversubscribed_)) return;
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
    if (operation->cuda_context != nullptr) cuda_.Enter(cuda_context_ = operation->cuda_context);
    if (failure_) {
      watch_.Report();  // it came before the failure, which no call had met
      jobs_.push_back(operation);
      ended_ = false;
      continue;
    }
    if (!Pending()) watch_.Progressed();
    next_deadline_ = std::min(next_deadline_, operation->deadline.at());
    if (operation->collective()) {
      jobs_.push_back(std::move(operation));
    } else {
      StartMessage(operation);
    }
  }
}

void Engine::StartMessage(const std::shared_ptr<Operation>& operation) {
  const dtrun_op& op = *operation->op;
  Transfer& transfer = operation->transfer;
  transfer.peer = op.peer;
  transfer.bytes = op.count * kernels::ElementBytes(op.dtype);
  transfer.owner = operation.get();
  transfer.report = true;
  transfer.memory = op.kind == DTRUN_SEND ? operation->send_memory : operation->recv_memory;
  messages_.push_back(operation);
  try {
    if (op.kind == DTRUN_SEND) {
      worker_.Send(transfer, MakeTag(TagUse::kMessage, members().rank(), op.tag), op.send);
    } else {
      const bool anyone = op.peer == DTRUN_ANY_SOURCE;
      worker_.Recv(transfer, MakeTag(TagUse::kMessage, anyone ? 0 : op.peer, op.tag),
                   anyone ? kAnySender : kWholeTag, op.recv);
    }
  } catch (const Failure& failure) {
    watch_.End(Failure(failure.code(), operation->text + ": " + failure.what(), failure.peer()));
  }
}

// True when there were some: one of them may be what the caller waits for.
bool Engine::ReapMessages() {
  const std::vector<Transfer*> finished = worker_.TakeFinished();
  for (Transfer* transfer : finished) {
    if (failure_) return true;  // CompleteAllFailed ends them
    auto& operation = *static_cast<Operation*>(transfer->owner);
    try {
      watch_.CheckTransfer(worker_, *transfer, operation.text);
    } catch (const Failure&) {
      return true;  // noted as the cause
    }
    if (operation.op->kind == DTRUN_RECV && operation.op->source != nullptr) {
      *operation.op->source = SenderOf(transfer->info.sender_tag);
    }
    const auto at = std::find_if(messages_.begin(), messages_.end(),
                                 [&](const auto& other) { return other.get() == &operation; });
    const std::shared_ptr<Operation> keep = std::move(*at);
    messages_.erase(at);
    Complete(operation, std::nullopt);
  }
  return !finished.empty();
}

void Engine::RunJob(const std::shared_ptr<Operation>& job) {
  current_ = job;
  {
    const std::lock_guard lock(mutex_);
    doing_ = job->text;
  }
  try {
    if (job->on_device()) {
      RunOnDevices(*messenger_, *job->op);
    } else {
      algorithms::RunCollective(*messenger_, *job->op);
    }
  } catch (const Failure& thrown) {
    watch_.End(Failure(thrown.code(), job->text + ": " + thrown.what(), thrown.peer()));
  } catch (const std::bad_alloc&) {
    // Half done, so the other ranks cannot finish either.
    watch_.End(Failure(DTRUN_OUT_OF_MEMORY, job->text + " needs more memory than there is"));
  }
  awaited_ = -1;
  if (failure_) {
    // Even when its own part is complete: one cause for all that is pending.
    jobs_.push_front(std::exchange(current_, nullptr));
    return;
  }
  current_ = nullptr;
  watch_.Progressed();
  if (!routes_told_) TellRoutes();
  Complete(*job, std::nullopt);
}

// What UCX really chose is known once messages have gone.
void Engine::TellRoutes() {
  std::set<std::string> routes;
  for (int peer = 0; peer < members().size(); ++peer) {
    if (peer != members().rank()) routes.insert(worker_.Route(peer));
  }
  routes.erase("");
  if (routes.empty()) return;
  routes_told_ = true;
  std::string text = "'" + members().name() + "' exchanges messages over";
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
      if (failure_) break;
      Turn(idle);
    }
  }
  failure_.ThrowIfSet();
  watch_.CheckTransfer(worker_, transfer, current_->text);
}

void Engine::Sleep() {
  if (!shut_ && !worker_.Arm()) return;
  {
    const std::lock_guard lock(mutex_);
    if (!submitted_.empty() || stop_ || (failure_ && !ended_) || (wanting_ > 0 && !Pending())) return;
    sleeping_ = true;
  }
  std::vector<pollfd> waits = {pollfd{wakeup_, POLLIN, 0}};
  if (!shut_) {
    waits.push_back({worker_.event_fd(), POLLIN, 0});
    watch_.AppendTo(waits);
  }
  sdk::Nanoseconds left = std::chrono::hours(1);
  if (Pending()) {
    const Clock::time_point wake = std::min(next_deadline_, watch_.next_check());
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
    watch_.CheckProcesses();
  }
  const std::lock_guard lock(mutex_);
  sleeping_ = false;
  std::uint64_t wakeups = 0;
  while (read(wakeup_, &wakeups, sizeof wakeups) < 0 && errno == EINTR) {
  }
}

void Engine::Complete(Operation& operation, std::optional<Failure> failure) {
  const std::lock_guard lock(mutex_);
  if (!operation.failed) operation.failure = std::move(failure);
  operation.done.store(true, std::memory_order_release);
  if (!Pending()) doing_.clear();
  if (waiters_ > 0) changed_.notify_all();
}

void Engine::CheckTimes() {
  if (failure_ || !Pending()) return;
  const auto now = Clock::now();
  if (now >= next_deadline_) {
    next_deadline_ = kNever;
    std::vector<const Operation*> all;
    if (current_) all.push_back(current_.get());
    for (const auto& job : jobs_) all.push_back(job.get());
    for (const auto& message : messages_) all.push_back(message.get());
    for (const Operation* one : all) {
      next_deadline_ = std::min(next_deadline_, one->deadline.at());
      if (now < one->deadline.at()) continue;
      const bool queued = current_ && one != current_.get() && one->collective();
      const int peer = one->collective() ? awaited_ : one->op->peer;
      std::string text = one->text + " did not end within " + sdk::DurationText(one->timeout);
      if (queued) text += ", behind " + current_->text;
      if (peer >= 0) text += "; this rank waits for rank " + std::to_string(peer);
      return watch_.End(
          Failure(DTRUN_TIMEOUT,
                  text + "; see what that rank is doing, or raise the timeout (backend.timeout)", peer));
    }
  }
  if (now < watch_.next_check()) return;
  watch_.CheckProcesses();
  watch_.CheckStore(AwaitedRanks());
}

// The ranks that the collective and the messages of this rank wait for.
std::set<int> Engine::AwaitedRanks() const {
  std::set<int> awaited;
  if (awaited_ >= 0) awaited.insert(awaited_);
  for (const auto& message : messages_) {
    if (message->op->peer >= 0) awaited.insert(message->op->peer);
  }
  return awaited;
}

void Engine::Shut() noexcept {
  // Before the connections break: a rank that sees them break looks for the reason.
  if (failure_) watch_.Tell(Pending());
  if (failure_) TellAllFailed();  // UCX may take its time to let go of them
  if (shut_) return;
  shut_ = true;
  if (!worker_.Shut(Clock::now() + kShutPatience)) {
    sdk::Log(host_, "ucx")
        .Error("UCX has not let go of all messages of '" + members().name() +
               "' within 5 s; end this process before their buffers are used again");
  }
}

void Engine::TellAllFailed() {
  const std::lock_guard lock(mutex_);
  const auto tell = [this](Operation& operation) {
    if (operation.failed) return;
    operation.failure = *failure_;
    operation.failed.store(true, std::memory_order_release);
  };
  if (current_) tell(*current_);
  for (const auto& job : jobs_) tell(*job);
  for (const auto& message : messages_) tell(*message);
  if (waiters_ > 0) changed_.notify_all();
}

void Engine::CompleteAllFailed() {
  Shut();
  ended_ = true;
  for (const auto& job : std::exchange(jobs_, {})) Complete(*job, *failure_);
  for (const auto& message : messages_) Complete(*message, *failure_);
  // Kept: UCX may not have let go of them.
  std::move(messages_.begin(), messages_.end(), std::back_inserter(failed_messages_));
  messages_.clear();
}

}  // namespace dtrun::ucx_plugin

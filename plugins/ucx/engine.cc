#include "engine.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

// How long the engine's thread keeps away after a caller drove.
constexpr std::chrono::milliseconds kKeepAway{1};
constexpr std::chrono::milliseconds kWhileCallersDrive{5};
constexpr std::chrono::seconds kClosePatience{10};

int MakeWakeup() {
  const int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wakeup < 0) throw Failure(DTRUN_SYSTEM, std::string("make an eventfd: ") + std::strerror(errno));
  return wakeup;
}

}  // namespace

Engine::Engine(const sdk::Host& host, const sdk::CommParams& params, std::shared_ptr<Context> context,
               const DeviceMemory& devices)
    : host_(host),
      context_(std::move(context)),
      devices_(devices),
      watch_(host, params,
             [this] {
               const std::lock_guard lock(mutex_);
               Wake();
               worker_wakes_.notify_one();
             }),
      messenger_(std::make_unique<WorkerMessenger>(*this)),
      worker_(*context_, params.rank, params.size, [this](int peer) { return watch_.AddressOf(peer); }),
      wakeup_(MakeWakeup()),
      oversubscribed_(params.Oversubscribed()) {
  try {
    watch_.Join(worker_.Address(), params.timeout);
    const sdk::BlockSignals block;
    thread_ = std::thread([this] { Work(); });
  } catch (...) {
    close(wakeup_);
    throw;
  }
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    Wake();
    worker_wakes_.notify_all();
  }
  thread_.join();
  cuda_.Enter(cuda_context_);
  try {
    if (!failure_) members().Leave();
    if (!shut_) worker_.Close(Clock::now() + kClosePatience);
  } catch (const Failure& failure) {
    sdk::Log(host_, "ucx").Debug(std::string("leaving '") + members().name() + "': " + failure.what());
  }
  close(wakeup_);
}

// ---- callers -------------------------------------------------------------------------

std::unique_ptr<UcxRequest> Engine::Enqueue(const dtrun_op& op, const dtrun_stream*) {
  auto operation = std::make_shared<Operation>(op, members().size(), devices_);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) watch_.Report();  // now there is a call that the failure ends
    failure_.ThrowIfSet();
    submitted_.push_back(operation);
    if (!operation->blocking()) {  // else its caller drives
      Wake();
      if (!driving_) worker_wakes_.notify_one();
    }
  }
  return std::make_unique<UcxRequest>(*this, std::move(operation));
}

bool Engine::Wait(Operation& operation, sdk::Nanoseconds timeout, bool outcome) {
  if (!operation.done.load(std::memory_order_acquire)) {
    const sdk::Deadline until(timeout);
    // A thread that drives cannot stop in the middle of a collective.
    const bool may_drive = operation.blocking() && until.at() >= operation.deadline.at();
    std::unique_lock lock(mutex_);
    while (!operation.done && !(outcome && operation.failed)) {
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
          worker_wakes_.notify_one();
        }
        continue;
      }
      if (operation.blocking() && !may_drive) {  // the wait is too short to drive
        left_behind_ = true;
        Wake();
        worker_wakes_.notify_one();
      }
      if (until.passed()) return false;
      ++waiters_;
      if (may_drive) {
        ++wanting_;
        Wake();
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

void Engine::Abort(const std::string& reason) {
  watch_.End(Failure(DTRUN_ABORTED, "'" + members().name() + "' was aborted: " + reason));
}

void Engine::Snapshot(const sdk::SnapshotSink& sink) {
  const std::lock_guard lock(mutex_);
  sink.Line(doing_.empty() ? "idle" : doing_);
  if (!submitted_.empty()) sink.Line(std::to_string(submitted_.size()) + " operations not yet looked at");
  if (!routes_.empty()) sink.Line(routes_);
  if (failure_) sink.Line(std::string("failed: ") + failure_->what());
}

void Engine::MemRegister(const dtrun_mem_params& params, void* memory) {
  failure_.ThrowIfSet();
  const ucs_memory_type_t type = devices_.TypeOf(memory);
  sdk::CudaScope scope;
  if (type != UCS_MEMORY_TYPE_HOST) scope.Enter(sdk::CudaScope::ContextOf(memory));
  worker_.registrations().Add(memory, params.bytes, type);
}

void Engine::MemDeregister(void* memory) { worker_.registrations().Remove(memory); }

// Ends the sleep of the thread that drives, if it sleeps. REQUIRES mutex_.
void Engine::Wake() {
  if (!sleeping_) return;
  const std::uint64_t one = 1;
  while (write(wakeup_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

// ---- the engine's own thread ---------------------------------------------------------

void Engine::Work() {
  const sdk::ThreadScope scope(host_, "ucx-worker");
  std::unique_lock lock(mutex_);
  std::uint64_t seen_calls = 0;
  while (!stop_) {
    if (driving_) {
      worker_wakes_.wait_for(lock, kWhileCallersDrive);
      continue;
    }
    if (ended_ && submitted_.empty()) {
      worker_wakes_.wait(lock);
      continue;
    }
    if (!HasWork() && (calls_ != seen_calls || wanting_ > 0 || !submitted_.empty())) {
      seen_calls = calls_;
      worker_wakes_.wait_for(lock, kKeepAway);
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

// Whether the engine's own thread has something to do: a blocking operation belongs to its caller, unless
// that one has stopped waiting. REQUIRES mutex_, on the thread that drives or when none does.
bool Engine::HasWork() const {
  return left_behind_ || Pending() || (failure_ && !ended_) ||
         std::any_of(submitted_.begin(), submitted_.end(),
                     [](const auto& operation) { return !operation->blocking(); });
}

}  // namespace dtrun::ucx_plugin

#include "core/comm/staging/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/number.h"
#include "core/comm/operation.h"
#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::comm {

using sdk::Failure;

namespace {

// For a buffer that is cut, if all ranks can pin as much. Not tuned on a device yet.
constexpr std::uint64_t kPieceBytes = 4 << 20;
// How much later than the wire staging gives up.
constexpr std::chrono::milliseconds kWireSpeaks{500};
// How long a device may take to end the copies of a communicator that has failed.
constexpr std::chrono::seconds kCopiesEnd{5};

// Whether the wire matches the two messages in the order of their starts.
bool MustStayInOrder(const dtrun_op& a, const dtrun_op& b) {
  const bool any = a.peer == DTRUN_ANY_SOURCE || b.peer == DTRUN_ANY_SOURCE;
  return a.kind == b.kind && a.tag == b.tag && (any || a.peer == b.peer);
}

}  // namespace

StagingCommunicator::StagingCommunicator(const Staging& staging, const dtrun_comm_params& params)
    : coreless_(staging.coreless),
      health_(sdk::Host(staging.services)),
      kv_(sdk::Host(staging.services), params.kv),
      name_(params.name.data, params.name.size),
      rank_(params.rank),
      size_(params.size),
      device_(staging.device, params.device_index),
      wire_(staging, params),
      out_(device_),
      in_(device_),
      pieces_(device_, name_),
      piece_bytes_(wire_.Least(pieces_.Affordable(kPieceBytes), kPieceBytes,
                               sdk::Deadline(sdk::Nanoseconds(params.timeout_ns)))) {
  const sdk::BlockSignals block;
  thread_ = std::thread([this] { Run(); });
}

StagingCommunicator::~StagingCommunicator() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StagingCommunicator::End(Staged& operation, Staged::Outcome outcome) {
  const std::lock_guard lock(mutex_);
  operation.End(outcome);
  ++ended_;
}

std::unique_ptr<StagedRequest> StagingCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream* stream) {
  failure_.ThrowIfSet();
  auto operation = std::make_shared<Staged>(op, rank_, size_, piece_bytes_, wire_.Takes(op, device_));
  Grouped one{operation, std::nullopt};
  if (stream != nullptr) one.stream = *stream;
  if (grouping_) {
    group_.push_back(std::move(one));
  } else {
    Launch({std::move(one)});
  }
  return std::make_unique<StagedRequest>(*this, std::move(operation));
}

void StagingCommunicator::GroupBegin() {
  failure_.ThrowIfSet();
  grouping_ = true;
}

void StagingCommunicator::GroupEnd() {
  grouping_ = false;
  Launch(std::exchange(group_, {}));
}

void StagingCommunicator::MemRegister(const dtrun_mem_params& params, void* memory) {
  failure_.ThrowIfSet();
  wire_.Register(params, memory);
}

void StagingCommunicator::MemDeregister(void* memory) { wire_.Deregister(memory); }

void StagingCommunicator::Launch(const std::vector<Grouped>& operations) {
  if (operations.empty()) return;
  try {
    for (const Grouped& one : operations) {
      if (!one.stream) continue;
      one.operation->ready = device_.MakeEvent();
      device_.Record(one.operation->ready, *one.stream);
    }
  } catch (const Failure& failure) {
    Fail(failure);
    failure_.ThrowIfSet();
  }
  {
    const std::lock_guard lock(mutex_);
    for (const Grouped& one : operations) {
      one.operation->launched = true;
      queue_.push_back(one.operation);
    }
  }
  changed_.notify_all();
}

void StagingCommunicator::OrderAfter(const Staged& operation, const dtrun_stream& stream) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return operation.given() || Ended(operation) || failure_; });
  if (operation.outcome() == Staged::Outcome::kDone) return;  // later work on the stream follows it anyway
  failure_.ThrowIfSet();
  if (operation.last_copy() != nullptr) device_.WaitEvent(operation.last_copy(), stream);
}

bool StagingCommunicator::Ended(const Staged& operation) const {
  return operation.outcome() != Staged::Outcome::kRunning || (failure_ && !operation.launched);
}

bool StagingCommunicator::Poll(const Staged& operation) {
  if (!Ended(operation)) return false;
  if (operation.outcome() == Staged::Outcome::kDone) return true;
  throw Failure(*failure_);
}

bool StagingCommunicator::Wait(const Staged& operation, sdk::Nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto ended = [&] { return Ended(operation); };
  if (timeout.count() < 0) {
    changed_.wait(lock, ended);
  } else if (!changed_.wait_for(lock, timeout, ended)) {
    return false;
  }
  return Poll(operation);
}

void StagingCommunicator::Abort(const std::string& reason) {
  Fail(Failure(DTRUN_ABORTED, fmt::format("'{}' was aborted: {}", name_, reason)));
}

void StagingCommunicator::Fail(const Failure& cause) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.Set(cause)) return;
  }
  if (coreless_ && (cause.code() == DTRUN_REMOTE_FAILURE || cause.code() == DTRUN_TIMEOUT) &&
      cause.peer() >= 0)
    health_.ReportPeer(kv_, cause.peer(), cause.what());
  changed_.notify_all();
  wire_.Abort(cause.what());
}

void StagingCommunicator::Run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const bool idle = collectives_.empty() && messages_.empty();
      if (idle) changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      for (; !queue_.empty(); queue_.pop_front())
        (queue_.front()->collective() ? collectives_ : messages_).push_back(queue_.front());
      // Operations that still run when the communicator is destroyed were aborted before.
      if (stop_ && collectives_.empty() && messages_.empty()) return;
    }
    try {
      failure_.ThrowIfSet();
      if (AdvanceAll()) {
        patience_.Reset();
      } else {
        Pause();
      }
    } catch (const Failure& failure) {
      Fail(failure);
      EndAll();
    } catch (const std::bad_alloc&) {
      Fail(Failure(DTRUN_OUT_OF_MEMORY, "out of memory in the middle of an operation that is staged"));
      EndAll();
    }
  }
}

bool StagingCommunicator::AdvanceAll() {
  bool advanced = false;
  // The next one's copies go out while the first is on the wire.
  for (std::size_t i = 0; i < std::min<std::size_t>(2, collectives_.size()); ++i)
    advanced = AdvanceOne(*collectives_[i], i == 0 || collectives_[0]->sent(), i == 0 && messages_.empty()) ||
               advanced;
  for (auto at = messages_.begin(); at != messages_.end(); ++at) {
    const bool in_turn = std::none_of(messages_.begin(), at, [&](const std::shared_ptr<Staged>& earlier) {
      return !earlier->sent() && MustStayInOrder(earlier->op(), (*at)->op());
    });
    advanced = AdvanceOne(**at, in_turn, at == messages_.begin() && collectives_.empty()) || advanced;
  }
  while (!collectives_.empty() && collectives_.front()->done()) {
    Finish(*collectives_.front());
    collectives_.pop_front();
  }
  std::erase_if(messages_, [this](const std::shared_ptr<Staged>& message) {
    if (!message->done()) return false;
    Finish(*message);
    return true;
  });
  return advanced;
}

bool StagingCommunicator::AdvanceOne(Staged& operation, bool may_send, bool first) {
  // For an operation on the wire, the wire knows which rank is missing; one that waits for its turn behind
  // another has nothing to report.
  const bool speaks = first && !operation.sent() && operation.Waiting() == nullptr;
  if (operation.deadline().passed() &&
      (speaks || sdk::Deadline::Clock::now() > operation.deadline().at() + kWireSpeaks)) {
    throw TimedOut(operation, name_);
  }
  const bool advanced = operation.Advance({device_, *out_, *in_, pieces_, wire_}, may_send);
  if (advanced && operation.MarkGiven()) {
    const std::lock_guard lock(mutex_);  // waiters check under the lock
    changed_.notify_all();
  }
  return advanced;
}

Failure StagingCommunicator::TimedOut(const Staged& operation, const std::string& name) {
  const std::string what = fmt::format("{} did not end within {}", Describe(operation.op(), name),
                                       sdk::DurationText(operation.deadline().timeout()));
  if (operation.sent() || operation.Waiting() != nullptr)
    return Failure(DTRUN_TIMEOUT, what + "; the ranks wait for each other");
  return Failure(DTRUN_TIMEOUT,
                 what + "; earlier work on the stream still runs, so this rank's device has not started it");
}

void StagingCommunicator::Pause() {
  // A wire that may run dry waits for copies, and only polling shows their end.
  constexpr std::chrono::microseconds kLook{100}, kLookWhileBusy{1000};
  for (const Operations* operations : {&collectives_, &messages_}) {
    for (const std::shared_ptr<Staged>& operation : *operations) {
      dtrun_request* const request = operation->Waiting();
      if (request == nullptr) continue;
      const bool busy = operation->MoreBehind() && messages_.empty();
      wire_.Wait(request, busy ? kLookWhileBusy : kLook);
      return;
    }
  }
  patience_.Wait(sdk::Deadline());
}

void StagingCommunicator::Finish(Staged& operation) {
  End(operation, Staged::Outcome::kDone);
  changed_.notify_all();
  if (operation.ready != nullptr) device_.DestroyEvent(std::exchange(operation.ready, nullptr));
  operation.Free(device_);
}

// For a communicator that has failed.
void StagingCommunicator::EndAll() {
  Operations all;
  all.swap(collectives_);
  all.insert(all.end(), messages_.begin(), messages_.end());
  messages_.clear();
  {
    const std::lock_guard lock(mutex_);
    all.insert(all.end(), queue_.begin(), queue_.end());
    queue_.clear();
  }
  for (const std::shared_ptr<Staged>& operation : all) operation->Drop(wire_);
  const sdk::Deadline patience(kCopiesEnd);
  for (const std::shared_ptr<Staged>& operation : all) {
    bool runs = true;
    try {
      sdk::Patience look;
      while ((runs = operation->Copies(device_)) && !patience.passed()) look.Wait(patience);
    } catch (const Failure&) {
      runs = true;  // the device no longer answers for it, so its memory is leaked
    }
    End(*operation, Staged::Outcome::kFailed);
    if (runs) {
      pieces_.Leak();
      continue;
    }
    if (operation->ready != nullptr) device_.DestroyEvent(std::exchange(operation->ready, nullptr));
    operation->Free(device_);
  }
  changed_.notify_all();
}

void StagingCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  sink.Line(!lock ? "operations are being started or ended at this moment"
                  : fmt::format("operations ended: {}, waiting to be staged: {}, in pieces of {} KiB", ended_,
                                queue_.size(), piece_bytes_ >> 10));
  if (failure_) sink.Line(std::string("failed: ") + failure_->what());
}

}  // namespace dtrun::comm

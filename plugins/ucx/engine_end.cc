// How an engine learns that something is wrong, and how it ends everything.
#include <algorithm>
#include <set>
#include <utility>

#include "engine.h"
#include "messenger.h"

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

constexpr std::chrono::milliseconds kLastCheck{1000};
constexpr std::chrono::seconds kShutPatience{5};

}  // namespace

// Throws, and fails the communicator, unless the message ended as it should.
void Engine::CheckTransfer(const Transfer& transfer, const std::string& text) {
  const std::string rank =
      "rank " + std::to_string(transfer.sending || transfer.peer >= 0 ? transfer.peer
                                                                      : SenderOf(transfer.info.sender_tag));
  const bool mismatch =
      transfer.status == UCS_ERR_MESSAGE_TRUNCATED ||
      (transfer.status == UCS_OK && !transfer.sending && transfer.info.length != transfer.bytes);
  if (transfer.status == UCS_OK && !mismatch) return;
  if (const std::optional<Failure> theirs = failure_ ? std::nullopt : members_.FailureOfAnother()) {
    End(*theirs, true);
  } else if (mismatch) {
    Fail(Failure(DTRUN_INVALID_ARGUMENT,
                 text + ": " + rank + " sent " + std::to_string(transfer.info.length) + " bytes where " +
                     std::to_string(transfer.bytes) + " were expected; the ranks disagree on count or type",
                 transfer.peer));
  } else if (!failure_ && transfer.peer >= 0 && members_.Left(transfer.peer)) {
    Fail(members_.LeftFailure(transfer.peer));
  } else {
    Fail(Failure(DTRUN_REMOTE_FAILURE,
                 text + ": lost " + rank + ": " + worker_.library().StatusText(transfer.status) +
                     "; look at that rank's output and host",
                 transfer.peer));
  }
  throw Failure(*failure_);
}

std::string Engine::AddressOf(int peer) {
  if (members_.Left(peer)) return "";
  const std::string place = members_.Said(kPlace, peer);
  const std::size_t line_end = place.find('\n');
  processes_.Add(peer, place.substr(0, line_end));
  return place.substr(line_end + 1);
}

void Engine::CheckLost() {
  while (const std::optional<Worker::Lost> lost = worker_.TakeLost()) {
    Lose(lost->peer, "lost the connection to rank " + std::to_string(lost->peer) + ": " +
                         worker_.library().StatusText(lost->status));
  }
}

void Engine::CheckProcesses() {
  for (const int peer : processes_.Ended()) {
    processes_.Remove(peer);
    Lose(peer, "the process of rank " + std::to_string(peer) + " has ended");
  }
}

// A rank that is gone is a failure, unless it had left in peace; who still waits for it will learn
// that from CheckPeers.
void Engine::Lose(int peer, const std::string& how) {
  if (failure_) return;
  try {
    if (const std::optional<Failure> theirs = members_.FailureOfAnother()) {
      End(*theirs, true);
    } else if (!members_.Left(peer)) {
      Fail(Failure(DTRUN_REMOTE_FAILURE, how + "; look at that rank's output and host", peer));
    } else {
      next_check_ = Clock::now();
    }
  } catch (const Failure& failure) {
    Fail(Failure(DTRUN_REMOTE_FAILURE, how + ", and the store does not answer: " + failure.what(), peer));
  }
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
      std::string text = one->text + " did not finish within " + sdk::DurationText(one->timeout);
      if (queued) text += ", behind " + current_->text;
      if (peer >= 0) text += "; this rank waits for rank " + std::to_string(peer);
      return Fail(
          Failure(DTRUN_TIMEOUT, text + "; see what that rank is doing, or raise backend.timeout", peer));
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
    if (const std::optional<Failure> theirs = members_.FailureOfAnother()) return End(*theirs, true);
    std::set<int> awaited;
    if (awaited_ >= 0) awaited.insert(awaited_);
    for (const auto& message : messages_) {
      if (message->op->peer >= 0) awaited.insert(message->op->peer);
    }
    for (const int peer : awaited) {
      if (!members_.Left(peer)) continue;
      // What it sent last may still be on its way.
      if (++seen_left_[static_cast<std::size_t>(peer)] >= 2) return Fail(members_.LeftFailure(peer));
      next_check_ = Clock::now() + kFirstCheck;
    }
  } catch (const Failure& failure) {
    Fail(Failure(failure.code(), std::string("the store does not answer: ") + failure.what()));
  }
}

// Once. Any thread.
void Engine::Report() noexcept {
  if (failure_->code() == DTRUN_REMOTE_FAILURE && failure_->peer() >= 0 && !reported_.exchange(true))
    sdk::Health(host_).ReportPeer(members_.kv(), failure_->peer(), failure_->what());
}

void Engine::Shut() noexcept {
  try {
    if (failure_ && !std::exchange(told_, true)) {
      // Who passes on what another rank said counts as one that waited too: not without a call.
      if (!theirs_ || Pending()) Report();
      // Before the connections break: who sees them break looks for the reason.
      if (!theirs_) members_.PublishFailure(*failure_);
    }
  } catch (const Failure& failure) {
    sdk::Log(host_, "ucx").Warn(std::string("cannot tell the other ranks: ") + failure.what());
  }
  if (shut_) return;
  shut_ = true;
  if (!worker_.Shut(Clock::now() + kShutPatience)) {
    sdk::Log(host_, "ucx")
        .Error("UCX has not let go of all messages of '" + members_.name() +
               "' within 5 s; end this process before their buffers are used again");
  }
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

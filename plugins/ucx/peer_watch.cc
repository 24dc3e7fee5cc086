#include "peer_watch.h"

#include <utility>

namespace dtrun::ucx_plugin {
namespace {

using sdk::Failure;

// The topic of Join: which process a rank is, a newline, the address of its worker.
constexpr char kPlace[] = "place";
constexpr std::chrono::milliseconds kFirstCheck{100};
constexpr std::chrono::milliseconds kLastCheck{1000};

}  // namespace

PeerWatch::PeerWatch(const sdk::Host& host, const sdk::CommParams& params, std::function<void()> on_end)
    : host_(host),
      members_(params),
      on_end_(std::move(on_end)),
      check_interval_(kFirstCheck),
      seen_left_(static_cast<std::size_t>(params.size)) {}

void PeerWatch::Join(const std::string& worker_address, sdk::Nanoseconds timeout) {
  members_.Join(kPlace, sdk::ProcessIdentity() + '\n' + worker_address, sdk::Deadline(timeout));
}

std::string PeerWatch::AddressOf(int peer) {
  if (members_.Left(peer)) return "";
  const std::string place = members_.Said(kPlace, peer);
  const std::size_t line_end = place.find('\n');
  processes_.Add(peer, place.substr(0, line_end));
  return place.substr(line_end + 1);
}

void PeerWatch::End(const Failure& failure, bool theirs) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    theirs_ = theirs;
    failure_.Set(failure);
  }
  on_end_();
}

void PeerWatch::CheckTransfer(const Worker& worker, const Transfer& transfer, const std::string& text) {
  const bool mismatch =
      transfer.status == UCS_ERR_MESSAGE_TRUNCATED ||
      (transfer.status == UCS_OK && !transfer.sending && transfer.info.length != transfer.bytes);
  if (transfer.status == UCS_OK && !mismatch) return;
  const bool known = transfer.sending || transfer.peer >= 0;
  const std::string rank =
      "rank " + std::to_string(known ? transfer.peer : SenderOf(transfer.info.sender_tag));
  if (const std::optional<Failure> theirs = failure_ ? std::nullopt : members_.FailureOfAnother()) {
    End(*theirs, true);
  } else if (mismatch) {
    End(Failure(DTRUN_INVALID_ARGUMENT,
                text + ": " + rank + " sent " + std::to_string(transfer.info.length) + " bytes where " +
                    std::to_string(transfer.bytes) + " were expected; the ranks disagree on count or type",
                transfer.peer));
  } else if (!failure_ && transfer.peer >= 0 && members_.Left(transfer.peer)) {
    End(members_.LeftFailure(transfer.peer));
  } else {
    End(Failure(DTRUN_REMOTE_FAILURE,
                text + ": lost " + rank + ": " + worker.library().StatusText(transfer.status) +
                    "; look at that rank's output and host",
                transfer.peer));
  }
  throw Failure(*failure_);
}

void PeerWatch::CheckConnections(Worker& worker) {
  while (const std::optional<Worker::Lost> lost = worker.TakeLost()) {
    Lose(lost->peer, "lost the connection to rank " + std::to_string(lost->peer) + ": " +
                         worker.library().StatusText(lost->status));
  }
}

void PeerWatch::CheckProcesses() {
  for (const int peer : processes_.Ended()) {
    processes_.Remove(peer);
    Lose(peer, "the process of rank " + std::to_string(peer) + " has ended");
  }
}

void PeerWatch::Lose(int peer, const std::string& how) {
  if (failure_) return;
  try {
    if (const std::optional<Failure> theirs = members_.FailureOfAnother()) {
      End(*theirs, true);
    } else if (!members_.Left(peer)) {
      End(Failure(DTRUN_REMOTE_FAILURE, how + "; look at that rank's output and host", peer));
    } else {
      next_check_ = Clock::now();
    }
  } catch (const Failure& failure) {
    End(Failure(DTRUN_REMOTE_FAILURE, how + ", and the store does not answer: " + failure.what(), peer));
  }
}

void PeerWatch::Progressed() {
  check_interval_ = kFirstCheck;
  next_check_ = Clock::now() + check_interval_;
}

void PeerWatch::CheckStore(const std::set<int>& awaited) {
  check_interval_ = std::min<sdk::Nanoseconds>(check_interval_ * 2, kLastCheck);
  next_check_ = Clock::now() + check_interval_;
  try {
    if (const std::optional<Failure> theirs = members_.FailureOfAnother()) return End(*theirs, true);
    for (const int peer : awaited) {
      if (!members_.Left(peer)) continue;
      // What it sent last may still be on its way.
      if (++seen_left_[static_cast<std::size_t>(peer)] >= 2) return End(members_.LeftFailure(peer));
      next_check_ = Clock::now() + kFirstCheck;
    }
  } catch (const Failure& failure) {
    End(Failure(failure.code(), std::string("the store does not answer: ") + failure.what()));
  }
}

void PeerWatch::Report() noexcept {
  if (failure_->code() == DTRUN_REMOTE_FAILURE && failure_->peer() >= 0 && !reported_.exchange(true))
    sdk::Health(host_).ReportPeer(members_.kv(), failure_->peer(), failure_->what());
}

void PeerWatch::Tell(bool pending) noexcept {
  if (std::exchange(told_, true)) return;
  // A rank that only passes on another rank's failure, without a call that waited, does not report it.
  if (!theirs_ || pending) Report();
  if (theirs_) return;
  try {
    members_.PublishFailure(*failure_);
  } catch (const Failure& failure) {
    sdk::Log(host_, "ucx").Warn(std::string("cannot tell the other ranks: ") + failure.what());
  }
}

}  // namespace dtrun::ucx_plugin

// Why a communicator of the ucx backend ends: watches the other ranks, keeps the first failure, and tells the
// others of it.
//
// Owned by an Engine. End, Report and failure(): any thread; the rest: the thread that drives the engine.
#pragma once

#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"
#include "dtrun/plugin/process_watch.hpp"
#include "worker.h"

namespace dtrun::ucx_plugin {

inline constexpr Clock::time_point kNever = Clock::time_point::max();

class PeerWatch {
 public:
  // `on_end` is called once, when the communicator fails, by the thread that noticed it.
  PeerWatch(const sdk::Host& host, const sdk::CommParams& params, std::function<void()> on_end)
      : host_(host),
        members_(params),
        on_end_(std::move(on_end)),
        check_interval_(kFirstCheck),
        seen_left_(static_cast<std::size_t>(params.size)) {}

  // Waits for all ranks. Throws sdk::Failure when they do not join in time.
  void Join(const std::string& worker_address, sdk::Nanoseconds timeout) {
    members_.Join(kPlace, sdk::ProcessIdentity() + '\n' + worker_address, sdk::Deadline(timeout));
  }
  // Of a rank's worker; "" when the rank has left.
  std::string AddressOf(int peer) {
    if (members_.Left(peer)) return "";
    const std::string place = members_.Said(kPlace, peer);
    const std::size_t line_end = place.find('\n');
    processes_.Add(peer, place.substr(0, line_end));
    return place.substr(line_end + 1);
  }

  const sdk::Membership& members() const { return members_; }
  const sdk::FirstFailure& failure() const { return failure_; }

  // Ends the communicator; the first cause stays. `theirs`: another rank has published it.
  void End(const sdk::Failure& failure, bool theirs = false) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      theirs_ = theirs;
      failure_.Set(failure);
    }
    on_end_();
  }

  // Throws, and ends the communicator, unless the message was transferred completely.
  void CheckTransfer(const Worker& worker, const Transfer& transfer, const std::string& text) {
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

  void CheckConnections(Worker& worker) {
    for (const Worker::Lost& lost : worker.TakeLost()) {
      Lose(lost.peer, "lost the connection to rank " + std::to_string(lost.peer) + ": " +
                          worker.library().StatusText(lost.status));
    }
  }
  void CheckProcesses() {
    for (const int peer : processes_.Ended()) {
      processes_.Remove(peer);
      Lose(peer, "the process of rank " + std::to_string(peer) + " has ended");
    }
  }

  // Asks the store for failures of the others, and whether ranks that this one waits for have left.
  void CheckStore(const std::set<int>& awaited) {
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

  // When to call CheckStore next: soon after progress, less and less often without it.
  Clock::time_point next_check() const { return next_check_; }
  void Progressed() {
    check_interval_ = kFirstCheck;
    next_check_ = Clock::now() + check_interval_;
  }
  // Descriptors that become readable when a process of another rank ends: call CheckProcesses then.
  void AppendTo(std::vector<pollfd>& waits) { processes_.AppendTo(waits); }

  // Reports the rank to blame to core, once.
  void Report() noexcept {
    if (failure_->code() == DTRUN_REMOTE_FAILURE && failure_->peer() >= 0 && !reported_.exchange(true))
      sdk::Health(host_).ReportPeer(members_.kv(), failure_->peer(), failure_->what());
  }

  // REQUIRES a failure. Tells core and the other ranks, once; `pending`: calls of this rank wait.
  void Tell(bool pending) noexcept {
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

 private:
  using Failure = sdk::Failure;
  // The topic of Join: which process a rank is, a newline, the address of its worker.
  static constexpr char kPlace[] = "place";
  static constexpr std::chrono::milliseconds kFirstCheck{100};
  static constexpr std::chrono::milliseconds kLastCheck{1000};

  // A lost rank is a failure unless it had left: then a call that still waits for it fails in CheckStore.
  void Lose(int peer, const std::string& how) {
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

  const sdk::Host host_;
  const sdk::Membership members_;
  const std::function<void()> on_end_;
  sdk::ProcessWatch processes_;  // ranks on this host that this rank exchanges messages with
  Clock::time_point next_check_ = kNever;
  sdk::Nanoseconds check_interval_;
  std::vector<int> seen_left_;  // per rank: how often
  bool told_ = false;

  std::mutex mutex_;                  // guards the next two together
  std::atomic<bool> theirs_ = false;  // another rank has published failure_; set before it
  sdk::FirstFailure failure_;
  std::atomic<bool> reported_ = false;
};

}  // namespace dtrun::ucx_plugin

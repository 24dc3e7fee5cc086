// Signals from the user: those that the guard relays, and SIGTERM sent to this process.
//
// Lives on the loop thread while the agent works. The current owner of the job sets the handler; without one,
// signals are queued.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <utility>

#include "core/base/timer.h"
#include "core/process/lifeline.h"

namespace dtrun::process {

class UserSignals {
 public:
  // Ends the job as a signal would: the time limit is reached.
  static constexpr int kTimeLimit = -2;

  // `signal`: a signal number; Lifeline::kGuardGone, once, if the guard is dead; or kTimeLimit, once per
  // handler.
  using Handler = std::function<void(int signal)>;

  // Both arguments must outlive it. Takes over SIGTERM of this process.
  UserSignals(asio::io_context& loop, Lifeline& lifeline);

  // The loop calls `handler`. An empty one queues signals for the next handler.
  void Handle(Handler handler);
  // Handles those that end the job, and a dead guard, by setting `*interrupted`; ranks do not run yet.
  void NoteEndIn(int* interrupted);
  // The loop calls `pressed` when the user presses the key that asks for stacks; empty: nothing does.
  void OnStacksKey(std::function<void()> pressed) { stacks_key_ = std::move(pressed); }
  // As if the user had sent `signal`.
  void Deliver(int signal) { Take(signal); }
  // Starts the time limit. Call once.
  void EndAfter(std::chrono::nanoseconds limit);
  std::chrono::nanoseconds limit() const { return limit_; }
  // Reply to SIGTSTP: everything is stopped, so the guard may stop as well.
  void Stopped() { lifeline_.Stopped(); }

  static bool EndsJob(int signal);

 private:
  void AwaitControl();
  void AwaitSigterm();
  void Take(int signal);
  void TimeIsUp();

  Lifeline& lifeline_;
  asio::posix::stream_descriptor control_, sigterm_;
  Timer timer_;
  std::chrono::nanoseconds limit_{};
  bool time_is_up_ = false;
  Handler handler_;
  std::function<void()> stacks_key_;
  std::deque<int> waiting_;
};

}  // namespace dtrun::process

// Signals of the user: those that the guard relays and a SIGTERM sent to this process.
//
// Lives on the loop thread for as long as the agent works; whoever is in charge sets the
// handler. While there is none, signals wait.
#pragma once

#include <chrono>
#include <deque>
#include <functional>

#include "core/base/asio.h"
#include "core/process/lifeline.h"

namespace dtrun::process {

class UserSignals {
 public:
  // What ends the job as a signal would: its time is up.
  static constexpr int kTimeLimit = -2;

  // A signal number; Lifeline::kGuardGone, once: the guard is dead; or kTimeLimit, once for each handler.
  using Handler = std::function<void(int signal)>;

  // Both must outlive it. Takes over SIGTERM of this process.
  UserSignals(boost::asio::io_context& loop, Lifeline& lifeline);

  // Called from the loop. An empty handler lets signals wait for the next one.
  void Handle(Handler handler);
  // From now on, once.
  void EndAfter(std::chrono::nanoseconds limit);
  std::chrono::nanoseconds limit() const { return limit_; }
  // Answers SIGTSTP: everything is stopped, so the guard may stop as well.
  void Stopped() { lifeline_.Stopped(); }

  static bool EndsJob(int signal);

 private:
  void AwaitControl();
  void AwaitSigterm();
  void Take(int signal);
  void TimeIsUp();

  Lifeline& lifeline_;
  boost::asio::posix::stream_descriptor control_, sigterm_;
  boost::asio::steady_timer timer_;
  std::chrono::nanoseconds limit_{};
  bool time_is_up_ = false;
  Handler handler_;
  std::deque<int> waiting_;
};

}  // namespace dtrun::process

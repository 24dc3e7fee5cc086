// A timer of an event loop that its owner may set again, cancel or destroy at any moment.
//
// Asio still runs the handler of a timer that had expired when it was cancelled or destroyed; this one does
// not. Loop thread.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "core/base/asio.h"

namespace dtrun {

class Timer {
 public:
  explicit Timer(const asio::steady_timer::executor_type& executor) : timer_(executor) {}
  explicit Timer(asio::io_context& loop) : timer_(loop) {}
  ~Timer() { Cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // The loop calls `then` after `time`, unless the timer is set again or cancelled before.
  template <class Then>
  void After(std::chrono::nanoseconds time, Then then) {
    timer_.expires_after(time);
    Await(std::move(then));
  }
  template <class Then>
  void At(std::chrono::steady_clock::time_point when, Then then) {
    timer_.expires_at(when);
    Await(std::move(then));
  }
  void Cancel() {
    set_.reset();
    timer_.cancel();
  }

 private:
  template <class Then>
  void Await(Then then) {
    set_ = std::make_shared<char>();
    timer_.async_wait([set = std::weak_ptr(set_), then = std::move(then)](const error_code& error) mutable {
      if (!error && !set.expired()) then();
    });
  }

  asio::steady_timer timer_;
  std::shared_ptr<char> set_;  // expires once the timer is set again, cancelled or destroyed
};

}  // namespace dtrun

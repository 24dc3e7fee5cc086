// Calls functions at points in time, on one thread of its own.
//
// Owned by a communicator. Gloo's own timeouts close every connection of a communicator
// before a rank can tell its peers why; so no wait of Gloo ever gets one, and this class
// ends the wait instead. Add and Cancel: any thread that is not inside a callback.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "dtrun/plugin.hpp"
#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::gloo_plugin {

class Timer {
 public:
  explicit Timer(const sdk::Host& host) {
    const sdk::BlockSignals block;
    thread_ = std::thread([this, host] { Run(host); });
  }
  ~Timer() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  using Id = std::pair<sdk::Deadline::Clock::time_point, std::uint64_t>;

  // Calls `callback` once at `at`. Callbacks run one at a time and must be short.
  Id Add(sdk::Deadline::Clock::time_point at, std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    const Id id{at, next_++};
    entries_.emplace(id, std::move(callback));
    if (at < wake_at_) {
      wake_at_ = at;
      changed_.notify_all();
    }
    return id;
  }

  // After it returns the callback has run or never will.
  void Cancel(const Id& id) {
    const std::lock_guard lock(mutex_);
    entries_.erase(id);
  }

 private:
  void Run(const sdk::Host& host) {
    const sdk::ThreadScope scope(host, "gloo-timer");
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (!entries_.empty() && entries_.begin()->first.first <= sdk::Deadline::Clock::now()) {
        const auto entry = entries_.extract(entries_.begin());
        entry.mapped()();  // under the lock: Cancel waits for it
        continue;
      }
      wake_at_ = entries_.empty() ? sdk::Deadline::Clock::time_point::max() : entries_.begin()->first.first;
      if (entries_.empty()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, wake_at_);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Id, std::function<void()>> entries_;
  std::uint64_t next_ = 0;
  // What the thread sleeps until. Entries that come and go behind it do not wake it.
  sdk::Deadline::Clock::time_point wake_at_ = sdk::Deadline::Clock::time_point::max();
  bool stop_ = false;
  std::thread thread_;
};

// An entry for as long as it lives; none when the deadline never comes.
class TimerEntry {
 public:
  TimerEntry(Timer& timer, const sdk::Deadline& deadline, std::function<void()> callback) : timer_(timer) {
    if (!deadline.never()) id_ = timer.Add(deadline.at(), std::move(callback));
  }
  ~TimerEntry() {
    if (id_) timer_.Cancel(*id_);
  }
  TimerEntry(const TimerEntry&) = delete;
  TimerEntry& operator=(const TimerEntry&) = delete;

 private:
  Timer& timer_;
  std::optional<Timer::Id> id_;
};

}  // namespace dtrun::gloo_plugin

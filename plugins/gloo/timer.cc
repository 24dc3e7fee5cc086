#include "timer.h"

#include "dtrun/plugin/block_signals.hpp"

namespace dtrun::gloo_plugin {

Timer::Timer(const sdk::Host& host) {
  const sdk::BlockSignals block;
  thread_ = std::thread([this, host] { Run(host); });
}

Timer::~Timer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Timer::Id Timer::Add(sdk::Deadline::Clock::time_point at, std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  const Id id{at, next_++};
  entries_.emplace(id, std::move(callback));
  if (at < wake_at_) {
    wake_at_ = at;
    changed_.notify_all();
  }
  return id;
}

void Timer::Cancel(const Id& id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(id);
}

void Timer::Run(const sdk::Host& host) {
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

}  // namespace dtrun::gloo_plugin

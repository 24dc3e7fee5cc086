// Watches operations on devices, which no other thread waits for: polls for their end, turns missed deadlines
// into failures, and releases what the program has dropped. Reminds when a program has not learned of a
// failure.
//
// Owned by its communicator, which tests and forgets works. Its thread starts with the first work and polls
// only while there is one. Any thread may call the members, but only one may call End.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/number.h"
#include "core/comm/work.h"

namespace dtrun::comm {

class DeviceWatch {
 public:
  struct Hooks {
    std::function<bool(dtrun_work&)> ended;   // polls; a failed one has ended
    std::function<void(dtrun_work*)> forget;  // one that is dropped and has ended
    std::function<void()> unheard;            // what Remind schedules
  };

  explicit DeviceWatch(Hooks hooks) : hooks_(std::move(hooks)) {}
  ~DeviceWatch() { End(); }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  void Add(dtrun_work& work);
  // The program has dropped its handle. True if the watch will forget it, false if the caller must.
  bool Drop(dtrun_work& work);
  // Removes it; afterwards the watch does not touch it.
  void Remove(dtrun_work& work);
  // Calls `unheard` after that time; only the first call counts. For the watch's own thread, which has found
  // a failure.
  void Remind(std::chrono::nanoseconds after) {
    if (!std::exchange(reminds_, true)) remind_at_ = Clock::now() + after;
  }
  // Whether the caller is the watch's thread.
  bool IsCaller() const { return caller_.load() == std::this_thread::get_id(); }
  // Waits until no dropped operation is left; the deadlines of the operations bound the wait.
  void AwaitDropped();
  // Ends the thread; remaining works are no longer watched. Idempotent.
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  void Run();
  // Sleeps until there is something to do. REQUIRES mutex_, held by `lock`.
  void Sleep(std::unique_lock<std::mutex>& lock);
  // Removes ended works; returns those to be forgotten. REQUIRES mutex_.
  std::vector<dtrun_work*> Look();

  const Hooks hooks_;
  std::mutex mutex_;  // guards works_, their `dropped`, and polling
  std::condition_variable changed_;
  std::list<dtrun_work*> works_;  // in start order
  std::size_t dropped_ = 0;
  bool end_ = false;
  std::thread thread_;
  std::atomic<std::thread::id> caller_;
  bool reminds_ = false;  // used by the thread only, as is remind_at_
  std::optional<Clock::time_point> remind_at_;
};

}  // namespace dtrun::comm

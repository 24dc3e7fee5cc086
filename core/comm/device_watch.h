// Looks after operations on devices, which nobody else waits for: asks for their end, lets their deadlines
// pass into failures, and drops what the program has dropped. Tells when a program does not come to hear of
// one.
//
// Owned by its communicator, which knows how to test and to forget a work. Its thread starts with the first
// work and asks only while there is one. The members: any thread, but End one.
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

#include "core/base/units.h"
#include "core/comm/work.h"

namespace dtrun::comm {

class DeviceWatch {
 public:
  struct Hooks {
    std::function<bool(dtrun_work&)> ended;   // asks; what failed has ended
    std::function<void(dtrun_work*)> forget;  // one that is dropped and has ended
    std::function<void()> unheard;            // what Remind asked for
  };

  explicit DeviceWatch(Hooks hooks) : hooks_(std::move(hooks)) {}
  ~DeviceWatch() { End(); }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  void Add(dtrun_work& work);
  // Nobody holds it any more: true when it is the watch's to forget, false when the caller must.
  bool Drop(dtrun_work& work);
  // Takes it out; afterwards the watch does not touch it.
  void Remove(dtrun_work& work);
  // Calls `unheard` so long from now; only the first one counts. By its own thread, which has found a
  // failure.
  void Remind(std::chrono::nanoseconds after) {
    if (!std::exchange(reminds_, true)) remind_at_ = Clock::now() + after;
  }
  // Whether the caller is its thread.
  bool IsCaller() const { return caller_.load() == std::this_thread::get_id(); }
  // Waits until nothing that was dropped is left; the deadlines of the operations end this.
  void AwaitDropped();
  // Ends the thread; what is left is no longer watched. Idempotent.
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  void Run();
  // Until there is something to do. REQUIRES mutex_, by `lock`.
  void Sleep(std::unique_lock<std::mutex>& lock);
  // Takes out what has ended; gives what is to be forgotten. REQUIRES mutex_.
  std::vector<dtrun_work*> Look();

  const Hooks hooks_;
  std::mutex mutex_;  // of works_, their `dropped`, and of the questions asked
  std::condition_variable changed_;
  std::list<dtrun_work*> works_;  // in the order of their starts
  std::size_t dropped_ = 0;
  bool end_ = false;
  std::thread thread_;
  std::atomic<std::thread::id> caller_;
  bool reminds_ = false;  // the thread's own, as the next
  std::optional<Clock::time_point> remind_at_;
};

}  // namespace dtrun::comm

// Looks after operations on devices, which nobody else waits for: asks for their end, lets their deadlines
// pass into failures, and drops what the program has dropped.
//
// Owned by its communicator, which knows how to test and to forget a work. Its thread starts with the first
// work and asks only while there is one. The members: any thread, but End one.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/units.h"
#include "core/comm/work.h"

namespace dtrun::comm {

class DeviceWatch {
 public:
  struct Hooks {
    std::function<bool(dtrun_work&)> ended;   // asks; what failed has ended
    std::function<void(dtrun_work*)> forget;  // one that is dropped and has ended
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
  // Waits until nothing that was dropped is left; the deadlines of the operations end this.
  void AwaitDropped();
  // Ends the thread; what is left is no longer watched. Idempotent.
  void End();

 private:
  void Run();
  // Takes out what has ended; gives what is to be forgotten. REQUIRES mutex_.
  std::vector<dtrun_work*> Look();

  const Hooks hooks_;
  std::mutex mutex_;  // of works_, their `dropped`, and of the questions asked
  std::condition_variable changed_;
  std::list<dtrun_work*> works_;  // in the order of their starts
  std::size_t dropped_ = 0;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace dtrun::comm

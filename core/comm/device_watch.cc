#include "core/comm/device_watch.h"

#include <algorithm>
#include <vector>

#include "dtrun/plugin/block_signals.hpp"
#include "dtrun/plugin/op.hpp"

namespace dtrun::comm {
namespace {

// How soon a failure that no call asks for is noticed; no result waits for it.
constexpr std::chrono::milliseconds kPeriod{2};

}  // namespace

void DeviceWatch::Add(dtrun_work& work) {
  const std::lock_guard lock(mutex_);
  works_.push_back(&work);
  if (work.dropped) ++dropped_;
  if (!thread_.joinable() && !end_) {
    const sdk::BlockSignals block;  // the program's signals stay with its own threads
    thread_ = std::thread([this] { Run(); });
  }
  if (works_.size() == 1) changed_.notify_all();
}

bool DeviceWatch::Drop(dtrun_work& work) {
  const std::lock_guard lock(mutex_);
  if (std::find(works_.begin(), works_.end(), &work) == works_.end()) return false;
  work.dropped = true;
  ++dropped_;
  return true;
}

void DeviceWatch::Remove(dtrun_work& work) {
  const std::lock_guard lock(mutex_);
  works_.remove(&work);
}

void DeviceWatch::AwaitDropped() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return dropped_ == 0 || end_; });
}

void DeviceWatch::End() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DeviceWatch::Sleep(std::unique_lock<std::mutex>& lock) {
  const auto busy = [this] { return end_ || !works_.empty(); };
  if (!remind_at_) return changed_.wait(lock, busy);
  changed_.wait_until(lock, *remind_at_, busy);
  if (end_ || Clock::now() < *remind_at_) return;
  remind_at_.reset();
  lock.unlock();
  hooks_.unheard();
  lock.lock();
}

void DeviceWatch::Run() {
  caller_ = std::this_thread::get_id();
  std::unique_lock lock(mutex_);
  while (!end_) {
    Sleep(lock);
    if (end_) return;
    const std::vector<dtrun_work*> gone = Look();
    if (!gone.empty()) {
      lock.unlock();  // a communicator adds works under a lock that forgetting takes
      for (dtrun_work* work : gone) hooks_.forget(work);
      lock.lock();
      dropped_ -= gone.size();
      if (dropped_ == 0) changed_.notify_all();
    }
    changed_.wait_for(lock, kPeriod, [this] { return end_; });
  }
}

std::vector<dtrun_work*> DeviceWatch::Look() {
  std::vector<dtrun_work*> gone;
  for (auto at = works_.begin(); at != works_.end();) {
    dtrun_work* const work = *at;
    const bool ended = hooks_.ended(*work);
    // Collectives end in call order: the first that runs stands for those after it, which have later
    // deadlines. Messages may overtake.
    if (!ended && sdk::IsCollective(work->op.kind)) break;
    if (!ended) {
      ++at;
      continue;
    }
    at = works_.erase(at);
    if (work->dropped) gone.push_back(work);
  }
  return gone;
}

}  // namespace dtrun::comm

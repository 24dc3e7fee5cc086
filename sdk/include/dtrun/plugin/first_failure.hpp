// dtrun/plugin/first_failure.hpp - why a communicator has ended: its first failure, which every later call
// reports again.
//
// Not part of plugin.hpp. Owned by a communicator. Any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  class FirstFailure {
   public:
    // Returns false and changes nothing when there already is one.
    bool Set(const Failure& failure) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (failure_) return false;
      failure_.emplace(failure);
      set_.store(true, std::memory_order_release);
      return true;
    }
    explicit operator bool() const noexcept { return set_.load(std::memory_order_acquire); }
    // REQUIRES that there is one; it never changes again.
    const Failure& operator*() const noexcept { return *failure_; }
    const Failure* operator->() const noexcept { return &*failure_; }
    void ThrowIfSet() const {
      if (*this) throw Failure(*failure_);
    }

   private:
    std::mutex mutex_;
    std::optional<Failure> failure_;
    std::atomic<bool> set_{false};
  };

}  // namespace v1
}  // namespace dtrun::sdk

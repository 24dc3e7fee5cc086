// How a communicator of several layers ends: one first cause, the same on all ranks.
//
// Whoever fails first puts the cause into the communicator's key-value space and then aborts its
// layers; whoever is torn down by that reads there why. So an error names the rank that really
// failed, by its number in the communicator, and not the leader that passed it on. Owned by the
// communicator; any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "dtrun/plugin/services.hpp"

namespace dtrun::comm {

class Ending {
 public:
  // `reports`: peers that failed, to the host; core does that itself.
  Ending(const sdk::Host& host, sdk::Kv kv, int rank, std::string name, bool reports)
      : health_(host), kv_(kv), rank_(rank), name_(std::move(name)), reports_(reports) {}

  // What is to be aborted; set before the first failure.
  void OnEnd(std::function<void(const std::string& reason)> abort) { abort_ = std::move(abort); }

  // Ends the communicator with `failure`, unless it has ended, and throws the first cause.
  [[noreturn]] void Fail(const sdk::Failure& failure);
  // The same without the throw.
  void End(const sdk::Failure& failure);
  void Abort(const std::string& reason);
  void ThrowIfFailed() {
    if (failed_.load(std::memory_order_acquire)) ThrowCause();
  }
  // Waits for somebody to end it, at most `patience`.
  void AwaitEnd(std::chrono::nanoseconds patience);
  std::optional<std::string> Text();
  // Tells the host of a peer that failed.
  void Report(const sdk::Failure& failure) const;

 private:
  struct Cause {
    int code = DTRUN_INTERNAL;
    int peer = -1;
    int reporter = -1;
    std::string text;
  };
  // The first cause of all ranks, as far as the store can tell.
  Cause Publish(Cause mine) const;
  [[noreturn]] void ThrowCause();
  sdk::Failure Seen(const Cause& cause) const;

  const sdk::Health health_;
  const sdk::Kv kv_;
  const int rank_;
  const std::string name_;
  const bool reports_;
  std::function<void(const std::string&)> abort_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Cause> cause_;
  std::atomic<bool> failed_{false};
};

}  // namespace dtrun::comm

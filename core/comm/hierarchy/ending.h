// How a communicator of several layers ends: with one first cause, the same on all ranks.
//
// The rank that fails first writes the cause into the communicator's key-value space and then aborts its
// layers. Ranks that this tears down read the cause there. So an error names the rank that really failed, by
// its number in the communicator, and not the leader that passed it on. Owned by the communicator; any
// thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"

namespace dtrun::comm {

class Ending {
 public:
  // `reports`: report failed peers to the host; core does that itself.
  Ending(const sdk::Host& host, const sdk::CommParams& params, bool reports)
      : health_(host), members_(params), reports_(reports) {}

  // Sets what aborts the layers; call it before the first failure.
  void OnEnd(std::function<void(const std::string& reason)> abort) { abort_ = std::move(abort); }

  // Ends the communicator with `failure`, unless it has ended, and throws the first cause.
  [[noreturn]] void Fail(const sdk::Failure& failure);
  // The same without the throw.
  void End(const sdk::Failure& failure);
  void Abort(const std::string& reason);
  // Publishes why this rank could not join. Throws the first such failure of all ranks: who waited in vain
  // for a rank that waited for another one names that other one.
  [[noreturn]] void FailToJoin(const sdk::Failure& failure);
  void ThrowIfFailed() const { failure_.ThrowIfSet(); }
  // Waits at most `patience` until the communicator has ended.
  void AwaitEnd(std::chrono::nanoseconds patience);
  // Empty while there is none.
  const sdk::FirstFailure& failure() const { return failure_; }
  // Reports a failed peer to the host.
  void Report(const sdk::Failure& failure) const;

 private:
  // Publishes `mine`. The first that was published, if it is another rank's.
  std::optional<sdk::Membership::Published> FirstOfOthers(const sdk::Failure& mine) const;
  // The first failure of all ranks, as far as the store knows, from this rank's side.
  sdk::Failure FirstOfAll(const sdk::Failure& mine) const;

  const sdk::Health health_;
  const sdk::Membership members_;
  const bool reports_;
  std::function<void(const std::string&)> abort_;
  std::mutex mutex_;
  std::condition_variable ended_;
  sdk::FirstFailure failure_;
};

}  // namespace dtrun::comm

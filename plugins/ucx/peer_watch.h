// Why a communicator of the ucx backend ends: watches the other ranks, keeps the first failure, and tells the
// others of it.
//
// Owned by an Engine. End, Report and failure(): any thread; the rest: the thread that drives the engine.
#pragma once

#include <functional>
#include <set>

#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"
#include "dtrun/plugin/process_watch.hpp"
#include "worker.h"

namespace dtrun::ucx_plugin {

inline constexpr Clock::time_point kNever = Clock::time_point::max();

class PeerWatch {
 public:
  // `on_end` is called once, when the communicator fails, by the thread that noticed it.
  PeerWatch(const sdk::Host& host, const sdk::CommParams& params, std::function<void()> on_end);

  // Waits for all ranks. Throws sdk::Failure when they do not join in time.
  void Join(const std::string& worker_address, sdk::Nanoseconds timeout);
  // Of a rank's worker; "" when the rank has left.
  std::string AddressOf(int peer);

  const sdk::Membership& members() const { return members_; }
  const sdk::FirstFailure& failure() const { return failure_; }
  // Ends the communicator; the first cause stays. `theirs`: another rank has published it.
  void End(const sdk::Failure& failure, bool theirs = false);

  // Throws, and ends the communicator, unless the message was transferred completely.
  void CheckTransfer(const Worker& worker, const Transfer& transfer, const std::string& text);
  void CheckConnections(Worker& worker);
  void CheckProcesses();
  // Asks the store for failures of the others, and whether ranks that this one waits for have left.
  void CheckStore(const std::set<int>& awaited);
  // When to call CheckStore next: soon after progress, less and less often without it.
  Clock::time_point next_check() const { return next_check_; }
  void Progressed();
  // Descriptors that become readable when a process of another rank ends: call CheckProcesses then.
  void AppendTo(std::vector<pollfd>& waits) { processes_.AppendTo(waits); }

  // Reports the rank to blame to core, once.
  void Report() noexcept;
  // REQUIRES a failure. Tells core and the other ranks, once; `pending`: calls of this rank wait.
  void Tell(bool pending) noexcept;

 private:
  // A lost rank is a failure unless it had left: then a call that still waits for it fails in CheckStore.
  void Lose(int peer, const std::string& how);

  const sdk::Host host_;
  const sdk::Membership members_;
  const std::function<void()> on_end_;
  sdk::ProcessWatch processes_;  // ranks on this host that this rank exchanges messages with
  Clock::time_point next_check_ = kNever;
  sdk::Nanoseconds check_interval_;
  std::vector<int> seen_left_;  // per rank: how often
  bool told_ = false;

  std::mutex mutex_;                  // guards the next two together
  std::atomic<bool> theirs_ = false;  // another rank has published failure_; set before it
  sdk::FirstFailure failure_;
  std::atomic<bool> reported_ = false;
};

}  // namespace dtrun::ucx_plugin

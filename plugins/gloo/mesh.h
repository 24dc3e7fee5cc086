// All ranks of a communicator, connected pairwise, with one failure for all of them.
//
// A Gloo context is unusable after any I/O error, so the first failure is final: it ends
// every wait, is told to the peers, and every later call reports it again. Owned by the
// communicator. After construction any thread may call; Fail also while others wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/interfaces.hpp"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/first_failure.hpp"
#include "dtrun/plugin/membership.hpp"
#include "dtrun/plugin/op.hpp"

namespace gloo {

class Context;
namespace transport {
class UnboundBuffer;
}
}  // namespace gloo

namespace dtrun::gloo_plugin {

class Monitor;
class Timer;
class Transfer;

// One operation under way, as messages and timeouts need to know it. Made by the thread
// that enqueues it, read by the one that carries it out.
struct Operation {
  Operation(std::string name, sdk::Nanoseconds limit) : text(std::move(name)), timeout(limit) {}
  explicit Operation(const dtrun_op& op)
      : Operation(sdk::OperationText(op), sdk::Nanoseconds(op.timeout_ns)) {}

  const std::string text;  // "allreduce 7", "recv from rank 1 with tag 3"
  const sdk::Nanoseconds timeout;
  static constexpr int kAnyone = -2;
  std::atomic<int> waiting_for{-1};  // the rank that it receives from right now, or kAnyone
};

// Gloo matches messages between two ranks by a 64-bit slot. The upper four bits tell the
// uses apart. The lower bits hold a digest of the operation, so that messages of ranks that
// disagree on it never match: Gloo would end the process when a message is longer than its
// buffer, and would silently combine different types.
enum class SlotUse : std::uint64_t { kAlarm = 1, kGoodbye, kProbe, kCollective, kPointToPoint };

inline std::uint64_t MakeSlot(SlotUse use, std::uint64_t low = 0) {
  return (static_cast<std::uint64_t>(use) << 60) | (low & ((std::uint64_t{1} << 60) - 1));
}

class Mesh {
 public:
  // Collective. Throws sdk::Failure within params.timeout when a rank does not come.
  Mesh(const sdk::Host& host, const sdk::CommParams& params, const interfaces::Interface& interface);
  // Local; at most about a second even when peers are gone. REQUIRES: no Transfer is left.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  const std::string& name() const { return members_.name(); }
  // "rank 1 (10.0.0.5, pid 4242)"
  std::string PeerText(int peer) const;
  // Ends operations at their deadlines. null in a world of one, as the context is.
  Timer* timer() const { return timer_.get(); }
  ::gloo::Context* context() const { return context_.get(); }

  // Why the communicator failed, once it has.
  const sdk::FirstFailure& failure() const { return failure_; }
  // Throws the first cause when there is one.
  void ThrowIfFailed() const {
    if (failure_) ThrowCause();
  }
  // A rank may exit as soon as its call has failed, so this first tells core who is to blame, and waits a
  // moment for the failure to be published to the others.
  [[noreturn]] void ThrowCause() const;

  // Ends the communicator. The first call counts. `theirs`: another rank published this failure.
  void Fail(const sdk::Failure& failure, bool theirs = false);
  void FailTimeout(const Operation& operation);
  // Gloo reported `what` on the connection to `peer`.
  void FailLost(int peer, const std::string& what);
  // The same when it is not known which connection failed; the monitor finds out.
  void FailUnknownLost(const std::string& what);

  // Whether `peer` has left without a failure: the last message on its connection says so. After a failure
  // the connection may be stuck in the middle of a message, so a rank that fails publishes why in the store.
  // REQUIRES: its connection has failed.
  bool SaidGoodbye(int peer);
  // Lets the others read why this rank fails. To be called before connections close.
  void PublishFailure();

 private:
  friend class Transfer;
  void Report() const;                // to core, once
  void Register(Transfer* transfer);  // throws when the mesh has failed
  void Unregister(Transfer* transfer);

  void Connect(const interfaces::Interface& interface, const sdk::Deadline& deadline);
  void Watch(const interfaces::Interface& interface);
  void AwaitAll(sdk::Nanoseconds timeout, const sdk::Deadline& deadline);

  const sdk::Host host_;
  const sdk::Membership members_;
  std::vector<std::string> places_;  // "10.0.0.5, pid 4242" of every rank

  mutable std::mutex mutex_;
  sdk::FirstFailure failure_;
  mutable std::atomic<bool> reported_ = false;
  mutable std::condition_variable published_changed_;
  mutable bool published_ = true;  // false between a failure and its announcement
  std::set<Transfer*> transfers_;

  std::shared_ptr<::gloo::Context> context_;

  std::mutex goodbyes_mutex_;
  std::vector<std::unique_ptr<::gloo::transport::UnboundBuffer>> goodbyes_;  // awaited from each peer
  std::vector<std::optional<bool>> said_goodbye_;                            // unset: not yet read

  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Monitor> monitor_;
};

}  // namespace dtrun::gloo_plugin

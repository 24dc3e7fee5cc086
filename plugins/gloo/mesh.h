// All ranks of a communicator, connected pairwise, with one failure for all of them.
//
// A Gloo context is unusable after any I/O error, so the first failure is final: it ends
// every wait, is told to the peers, and every later call reports it again. Owned by the
// communicator. After construction any thread may call; Fail also while others wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dtrun/interfaces.hpp"
#include "dtrun/plugin.hpp"
#include "operation.h"

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

// Why the communicator failed.
struct Cause {
  dtrun_status code = DTRUN_INTERNAL;
  std::string text;
  int peer = -1;     // rank that went away, when one did
  int awaited = -1;  // rank that an operation waited for in vain
};

// Why a rank left. Leaving in peace is a message on the connection; after a failure the
// connection may be stuck in the middle of another message, so that goes through the
// key-value space.
struct Parting {
  enum Kind { kDone = 1, kTimeout, kAborted, kLostPeer, kOther };
  int kind = kDone;
  int about = -1;  // the rank that was waited for or lost
};

class Mesh {
 public:
  // Collective. Throws sdk::Failure within params.timeout when a rank does not come.
  Mesh(const sdk::Host& host, const sdk::CommParams& params, const interfaces::Interface& interface);
  // Local; at most about a second even when peers are gone. REQUIRES: no Transfer is left.
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return name_; }
  // "rank 1 (10.0.0.5, pid 4242)"
  std::string PeerText(int peer) const;
  // Ends operations at their deadlines. null in a world of one, as the context is.
  Timer* timer() const { return timer_.get(); }
  ::gloo::Context* context() const { return context_.get(); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Throws the first cause when there is one.
  void ThrowIfFailed() const;
  // A rank that reports a failure may exit at once, so this first lets the others know, for
  // a moment at most.
  [[noreturn]] void ThrowCause() const;
  std::optional<Cause> cause() const;

  // Ends the communicator. The first call counts.
  void Fail(const Cause& cause);
  void FailTimeout(const Operation& operation);
  // Gloo reported `what` on the connection to `peer`.
  void FailLost(int peer, const std::string& what);
  // The same about a connection that is not known here; the monitor will name it.
  void FailSomebodyLost(const std::string& what);

  // Why `peer` left. REQUIRES: its connection has failed. nullopt: it vanished.
  std::optional<Parting> ReadParting(int peer);
  // Lets the others read why this rank fails. To be called before connections close.
  void PublishCause();

 private:
  friend class Transfer;
  void Register(Transfer* transfer);  // throws when the mesh has failed
  void Unregister(Transfer* transfer);

  void Meet(const sdk::CommParams& params, const interfaces::Interface& interface,
            const sdk::Deadline& deadline);
  void Connect(const sdk::CommParams& params, const interfaces::Interface& interface,
               const sdk::Deadline& deadline);
  std::vector<std::string> Gather(const sdk::CommParams& params, const std::string& announcement,
                                  const sdk::Deadline& deadline);

  const sdk::Host host_;
  const int rank_;
  const int size_;
  const std::string name_;
  const sdk::Kv kv_;
  std::vector<std::string> places_;  // "10.0.0.5, pid 4242" of every rank

  mutable std::mutex mutex_;
  std::optional<Cause> cause_;
  std::atomic<bool> failed_{false};
  mutable std::condition_variable published_changed_;
  mutable bool published_ = true;  // false between a failure and its announcement
  std::set<Transfer*> transfers_;

  std::shared_ptr<::gloo::Context> context_;

  std::mutex partings_mutex_;
  std::vector<std::unique_ptr<::gloo::transport::UnboundBuffer>> goodbyes_;  // awaited from each peer
  enum class Goodbye { kUnread, kReceived, kNone };
  std::vector<Goodbye> goodbye_states_;

  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Monitor> monitor_;
};

}  // namespace dtrun::gloo_plugin

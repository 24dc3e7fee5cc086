// A communicator of the gloo backend.
//
// Collectives run one after another on a thread of the communicator, in the order in which
// they were enqueued; one that its caller is going to wait for (DTRUN_OP_BLOCKING), and that
// has none before it, runs on the thread that waits. Sends and receives are handed to Gloo at once, so that
// two ranks that send to each other first and receive second never block. Owned by core; thread classes as in
// dtrun/abi/backend.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "collective.h"
#include "dtrun/plugin.hpp"
#include "mesh.h"

namespace dtrun::gloo_plugin {

class CollectiveJob;

class GlooCommunicator final : public sdk::Communicator<sdk::Request> {
 public:
  GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                   const interfaces::Interface& interface);
  ~GlooCommunicator() override;

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

  // Carries out a job that was kept for its waiter, on this thread. False when it was not, or
  // is no longer. [any]
  bool RunHere(const std::shared_ptr<CollectiveJob>& job);
  // Its waiter is not going to, or not for long enough: the worker does it. [any]
  void HandOver(const std::shared_ptr<CollectiveJob>& job);

 private:
  std::unique_ptr<sdk::Request> EnqueueCollective(const dtrun_op& op);
  std::unique_ptr<sdk::Request> EnqueuePointToPoint(const dtrun_op& op);
  void Queue(std::shared_ptr<CollectiveJob> job);
  void RunJobs(const sdk::Host& host);
  void RunJob(CollectiveJob& job);

  Mesh mesh_;

  std::atomic<std::uint64_t> last_enqueued_{0};
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<CollectiveJob>> jobs_;
  std::shared_ptr<CollectiveJob> kept_;  // for its waiter; nothing is queued or running then
  bool busy_ = false;                    // a job is being carried out
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace dtrun::gloo_plugin

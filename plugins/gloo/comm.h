// A communicator of the gloo backend.
//
// Collectives run one after another on a thread of the communicator, in the order in which
// they were enqueued. Sends and receives are handed to Gloo at once, so that two ranks that
// send to each other first and receive second never block. Owned by core; thread classes
// as in dtrun/abi/backend.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include "collective.h"
#include "dtrun/plugin.hpp"
#include "mesh.h"

namespace dtrun::gloo_plugin {

class CollectiveJob;

class GlooCommunicator final : public sdk::Communicator<sdk::Request> {
 public:
  GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params, const Interface& interface);
  ~GlooCommunicator() override;

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  void Check(const dtrun_op& op, const dtrun_stream* stream) const;
  std::unique_ptr<sdk::Request> EnqueueCollective(const dtrun_op& op, sdk::Nanoseconds timeout);
  std::unique_ptr<sdk::Request> EnqueuePointToPoint(const dtrun_op& op, sdk::Nanoseconds timeout);
  void RunJobs(const sdk::Host& host);
  void RunJob(CollectiveJob& job);

  const sdk::Nanoseconds default_timeout_;
  Mesh mesh_;

  // Number of the next message of a direction (DTRUN_SEND, DTRUN_RECV), peer and tag.
  std::map<std::tuple<int, int, std::uint32_t>, std::uint64_t> next_message_;

  std::atomic<std::uint64_t> last_enqueued_{0};
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<CollectiveJob>> jobs_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace dtrun::gloo_plugin

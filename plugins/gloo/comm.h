// A communicator of the gloo backend.
//
// Collectives run one after another in the order in which they were enqueued (sdk::CallQueue). Sends and
// receives are handed to Gloo at once, so that two ranks that send to each other first and receive second
// never block. Owned by core; thread classes as in dtrun/abi/backend.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dtrun/plugin/call_queue.hpp"
#include "mesh.h"
#include "messenger.h"

namespace dtrun::gloo_plugin {

class GlooCommunicator final : public sdk::Communicator<sdk::Request>, private sdk::Runner {
 public:
  GlooCommunicator(const sdk::Host& host, const sdk::CommParams& params,
                   const interfaces::Interface& interface);

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  void Run(sdk::Running& running) override;
  void Abandon(const sdk::Running& running) override;

  Mesh mesh_;
  MeshMessenger messenger_;
  std::atomic<std::uint64_t> last_enqueued_{0};
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};
  sdk::CallQueue calls_;  // its thread uses the rest
};

}  // namespace dtrun::gloo_plugin

// A communicator of the mpi backend: checks what it is asked for, and hands it on.
//
// Owned by core; thread classes as in dtrun/abi/backend.h. Its parts are shared with threads
// that may outlive it in a call of MPI that never ends.
#pragma once

#include <memory>
#include <string>

#include "collective_queue.h"
#include "messages.h"

namespace dtrun::mpi_plugin {

struct CommOptions {
  CollSm coll_sm = CollSm::kAuto;
  Blocking blocking = Blocking::kCaller;
  std::uint64_t limit = 1u << 30;  // the largest count given to one call of MPI
  bool cuda = false;               // operations may be in memory of CUDA
};

// Whether MPI alone does that operation, with no step of ours that would touch its elements.
bool MpiDoesAll(const dtrun_support_query& query);

class MpiCommunicator final : public sdk::Communicator<sdk::Request> {
 public:
  MpiCommunicator(const sdk::Host& host, const sdk::CommParams& params, World& world,
                  const CommOptions& options);
  ~MpiCommunicator() override;

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;

 private:
  const std::shared_ptr<Team> team_;
  const std::shared_ptr<CollectiveQueue> collectives_;
  const std::shared_ptr<Messages> messages_;
  const bool caller_runs_;
};

}  // namespace dtrun::mpi_plugin

// The shared-memory engine as a backend: the table that core puts before the plugin's for
// ranks of one host (docs/decisions/005-shared-memory.md). The plugin table around it exists for
// the tests, which drive the engine as they drive every transport. Constant tables; any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/comm/shm/collective.h"
#include "core/comm/shm/group.h"
#include "core/comm/shm/messages.h"
#include "dtrun/plugin.hpp"
#include "dtrun/plugin/call_queue.hpp"

namespace dtrun::shm {

// Complete, with init and shutdown; "shm".
const dtrun_plugin& EnginePlugin();

// A communicator of the shared-memory engine: calls in order, messages beside them.
//
// Owned by the user of the backend table (core); thread classes as in dtrun/abi/backend.h.
class ShmCommunicator final : public sdk::Communicator<sdk::Request>, private sdk::Runner {
 public:
  ShmCommunicator(const sdk::Host& host, const sdk::CommParams& params);

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;
  void* MemAlloc(const dtrun_mem_params& params) override;
  void MemFree(void* memory) override;

 private:
  bool Begin(const dtrun_op& op) override;
  bool Ready() override { return group_.EntriesCame(); }
  void Run(Running& running) override;
  void Abandon(const Running& running) override;
  [[noreturn]] void FailHalfDone();

  Group group_;
  Collectives collectives_;
  Messages messages_;
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};
  sdk::CallQueue calls_;  // its thread uses the rest
};

}  // namespace dtrun::shm

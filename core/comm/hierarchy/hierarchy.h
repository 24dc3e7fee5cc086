// Ranks on several hosts: shared memory inside each, the backend between one leader per host.
//
// A backend table like any other, built from two: `local` joins the ranks of one host, `wire` reaches every
// rank. If all ranks of a communicator share one host, it uses `local` alone; if no two do, `wire` alone.
// Owned by the runtime; thread classes as in dtrun/abi/backend.h. Rationale: docs/decisions/007-hierarchy.md.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "core/comm/hierarchy/ending.h"
#include "core/comm/hierarchy/layer.h"
#include "core/comm/hierarchy/layered_calls.h"
#include "core/comm/hierarchy/topology.h"
#include "core/comm/shm/group.h"
#include "dtrun/abi/services.h"
#include "dtrun/plugin/call_queue.hpp"

namespace dtrun::comm {

// The table's state; its instance is a pointer to this. The plugins see only the ranks and keys of their part
// of each communicator.
struct Layers {
  dtrun_backend local{};  // full tables
  dtrun_instance* local_instance = nullptr;
  dtrun_backend wire{};
  dtrun_instance* wire_instance = nullptr;
  int host = 0;  // of this rank
  const dtrun_host* services = nullptr;
  // Runs without core, which otherwise reports failed peers: reports them itself.
  bool coreless = false;
  dtrun_wrapped wire_plugin{};  // as programs reach its extensions
};

inline dtrun_instance* AsInstance(Layers* layers) { return reinterpret_cast<dtrun_instance*>(layers); }

const dtrun_backend& HierarchyBackend();
// The wire's communicator among the leaders of hosts: null on a rank that leads none. A communicator of one
// host has no wire, and stands on no plugin.
dtrun_backend_comm* WireBelow(dtrun_instance* self, dtrun_backend_comm* comm,
                              const dtrun_wrapped** out_wrapped);

// A communicator over one layer or two.
//
// Collectives run in order, as in the shared-memory engine. If the ranks are on several hosts, some of them
// together, collectives run in steps of both layers. Messages then use a separate wire that joins all ranks.
// If that wire connects every pair of ranks at once, only communicators of at most kMessageRanks have it.
// Owned by core through the table; thread classes as in dtrun/abi/backend.h.

inline constexpr int kMessageRanks = 32;

class HierarchyCommunicator final : public sdk::Communicator<sdk::Request>, private sdk::Runner {
 public:
  // Collective; ends by `deadline`, that of params.timeout. Throws sdk::Failure.
  HierarchyCommunicator(const Layers& layers, const dtrun_backend_caps& caps, const sdk::CommParams& params,
                        shm::Deadline deadline);

  std::unique_ptr<sdk::Request> Enqueue(const dtrun_op& op, const dtrun_stream* stream) override;
  void Abort(const std::string& reason) override;
  void Snapshot(const sdk::SnapshotSink& sink) override;
  void* MemAlloc(const dtrun_mem_params& params) override { return local_->Alloc(params); }
  void MemFree(void* memory) override { local_->Free(memory); }
  void MemRegister(const dtrun_mem_params& params, void* memory) override;
  void MemDeregister(void* memory) override;
  // As WireBelow.
  dtrun_backend_comm* Wire(const dtrun_wrapped** out_wrapped) const;

 private:
  void Run(sdk::Running& running) override;
  void Abandon(const sdk::Running& running) override;
  // The layers between hosts; either may be null.
  std::array<Layer*, 2> Wires() { return {wire_ ? &*wire_ : nullptr, messages_ ? &*messages_ : nullptr}; }

  const std::string name_;
  const dtrun_wrapped& wire_plugin_;
  const Topology topology_;
  sdk::KvPart local_kv_, wire_kv_, message_kv_;
  Ending ending_;
  std::optional<Layer> local_;     // the ranks of this host; this rank alone if no two share a host
  std::optional<Layer> wire_;      // the leaders; all ranks if no two share a host
  std::optional<Layer> messages_;  // all ranks, for messages
  Layer* sole_ = nullptr;          // takes every call, if one layer is enough
  std::optional<LayeredCalls> steps_;
  std::atomic<std::uint64_t> last_started_{0};
  std::atomic<std::uint64_t> last_completed_{0};
  sdk::CallQueue calls_;  // its thread uses the rest
};

}  // namespace dtrun::comm

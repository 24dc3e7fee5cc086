#include "core/comm/hierarchy/hierarchy.h"

#include <fmt/format.h>

#include <new>
#include <numeric>

#include "core/base/number.h"
#include "core/comm/composed.h"
#include "core/comm/operation.h"

namespace dtrun::comm {
namespace {

using sdk::Bits;

// The wire operation that implements a collective over several hosts.
constexpr std::int32_t WireKind(std::int32_t kind) {
  switch (kind) {
    case DTRUN_ALLGATHER: return DTRUN_ALLGATHERV;
    case DTRUN_REDUCE_SCATTER: return DTRUN_REDUCE_SCATTERV;
    case DTRUN_ALLTOALL:
    case DTRUN_GATHER:
    case DTRUN_SCATTER:
    case DTRUN_GATHERV:
    case DTRUN_SCATTERV: return DTRUN_ALLTOALLV;
    default: return kind;
  }
}

// What both layers support, alone and in steps.
dtrun_backend_caps CapsOf(const Layers& layers) {
  const dtrun_backend_caps local = CapsOfTable(layers.local, layers.local_instance);
  const dtrun_backend_caps wire = CapsOfTable(layers.wire, layers.wire_instance);
  dtrun_backend_caps caps = wire;
  caps.features = local.features & wire.features & (DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE);
  caps.features |=
      (wire.features & DTRUN_CAP_LAZY_CONNECT) | ((local.features | wire.features) & DTRUN_CAP_LOSSY);
  caps.dtypes &= local.dtypes;
  caps.reduce_dtypes &= local.reduce_dtypes;
  caps.reduces &= local.reduces;
  caps.device_kinds &= local.device_kinds;
  const auto has = [](std::uint64_t mask, int value) { return (mask >> value & 1) != 0; };
  if (!has(caps.reduces, DTRUN_SUM)) caps.reduces &= ~Bits({DTRUN_AVG, DTRUN_PREMUL_SUM});
  const bool counts = has(caps.reduce_dtypes, DTRUN_UINT64) && has(caps.reduces, DTRUN_MAX);
  for (int kind = 1; kind < sdk::kOperationEnd; ++kind) {
    const bool shares_counts = kind == DTRUN_ALLTOALLV || kind == DTRUN_GATHERV || kind == DTRUN_SCATTERV;
    const bool offered = has(local.ops, kind) && has(wire.ops, kind) && has(wire.ops, WireKind(kind)) &&
                         (!shares_counts || (counts && has(wire.ops, DTRUN_ALLREDUCE)));
    if (!offered) caps.ops &= ~Bits({kind});
  }
  return caps;
}

// What one layer does not support, the whole does not.
dtrun_status QuerySupport(const Layers& layers, const dtrun_support_query* query, dtrun_error* err) {
  for (const auto& [table, instance] :
       {std::pair(&layers.local, layers.local_instance), std::pair(&layers.wire, layers.wire_instance)}) {
    if (table->query_support == nullptr) continue;
    const dtrun_status status = table->query_support(instance, query, err);
    if (status != DTRUN_OK) return status;
  }
  return DTRUN_OK;
}

std::unique_ptr<HierarchyCommunicator> Make(const Layers& layers, const sdk::Host& host,
                                            const dtrun_comm_params* params) {
  const sdk::CommParams read = sdk::internal::ReadCommParams(host, params);
  return std::make_unique<HierarchyCommunicator>(layers, CapsOf(layers), read,
                                                 shm::Deadline(read.timeout.count()));
}

// How much later than the layer below it a layer gives up: a leader that misses a rank of its host reports
// before the leaders that miss that leader.
constexpr std::chrono::milliseconds kGrace{250};

std::vector<int> RanksBelow(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

const dtrun_backend& HierarchyBackend() {
  return ComposedBackend<Layers, HierarchyCommunicator, CapsOf, Make, QuerySupport>();
}

dtrun_backend_comm* WireBelow(dtrun_instance* /*self*/, dtrun_backend_comm* comm,
                              const dtrun_wrapped** out_wrapped) {
  return sdk::internal::As<sdk::internal::Comm<HierarchyCommunicator>>(comm)->object->Wire(out_wrapped);
}

HierarchyCommunicator::HierarchyCommunicator(const Layers& layers, const dtrun_backend_caps& caps,
                                             const sdk::CommParams& params, shm::Deadline deadline)
    : name_(params.name),
      wire_plugin_(layers.wire_plugin),
      topology_(Meet(params, layers.host, deadline)),
      local_kv_(sdk::Host(layers.services), params.kv.raw(), fmt::format("local/{}/", topology_.host())),
      wire_kv_(sdk::Host(layers.services), params.kv.raw(), "wire/"),
      message_kv_(sdk::Host(layers.services), params.kv.raw(), "messages/"),
      ending_(sdk::Host(layers.services), params, layers.coreless),
      calls_(sdk::Host(layers.services), *this, "host-calls", params.size) {
  const bool together = topology_.Together();
  const bool apart = topology_.Apart() && !together;
  const auto make = [&](std::optional<Layer>& layer, const dtrun_backend& table, dtrun_instance* instance,
                        Layer::Place place) {
    try {
      layer.emplace(table, instance, std::move(place), params, deadline, ending_);
    } catch (const sdk::Failure& failure) {
      ending_.FailToJoin(failure);
    }
  };
  const auto local = [&](Layer::Place place) {
    make(local_, layers.local, layers.local_instance, std::move(place));
  };
  const auto wire = [&](std::optional<Layer>& layer, Layer::Place place) {
    make(layer, layers.wire, layers.wire_instance, std::move(place));
  };
  if (together || apart) {
    local({name_, topology_.Mine(), 1, local_kv_.raw(), true});
    if (apart) wire(wire_, {name_, RanksBelow(params.size), params.size, wire_kv_.raw(), true});
    sole_ = apart ? &*wire_ : &*local_;
    return;
  }
  const int hosts = topology_.hosts();
  const bool leads = topology_.Leads();
  local({fmt::format("{} (host {})", name_, topology_.host()), topology_.Mine(), 1, local_kv_.raw(), false,
         leads ? std::chrono::milliseconds(0) : 2 * kGrace});
  // Before the leaders' wire, for wires that start with all ranks or not at all.
  if (params.size <= kMessageRanks || (caps.features & DTRUN_CAP_LAZY_CONNECT) != 0) {
    wire(messages_,
         {name_ + " (messages)", RanksBelow(params.size), hosts, message_kv_.raw(), false, kGrace});
  }
  if (leads) {
    wire(wire_, {name_ + " (between hosts)", topology_.Leaders(), hosts, wire_kv_.raw(), false, kGrace});
  }
  steps_.emplace(topology_, *local_, leads ? &*wire_ : nullptr);
  ending_.OnEnd([this](const std::string& reason) {
    local_->Abort(reason);
    if (wire_) wire_->Abort(reason);
    if (messages_) messages_->Abort(reason);
  });
}

std::unique_ptr<sdk::Request> HierarchyCommunicator::Enqueue(const dtrun_op& op, const dtrun_stream* stream) {
  if (sole_ != nullptr) return sole_->Forward(op, stream);
  ending_.ThrowIfFailed();
  if (sdk::IsCollective(op.kind)) return calls_.Enqueue(op);
  if (messages_) return messages_->Forward(op, stream);
  throw sdk::Failure(DTRUN_UNSUPPORTED,
                     fmt::format("'{}' has {} ranks on {} hosts, and messages go where there are at most {}; "
                                 "make a communicator of those that talk by subset, or set "
                                 "comm.local = \"none\"",
                                 name_, topology_.size(), topology_.hosts(), kMessageRanks));
}

void HierarchyCommunicator::Run(sdk::Running& running) {
  last_started_.store(running.op->sequence, std::memory_order_relaxed);
  ending_.ThrowIfFailed();
  try {
    steps_->Run(running);
  } catch (const sdk::Failure& failure) {
    ending_.Fail(failure);
  } catch (const std::bad_alloc&) {
    ending_.Fail(sdk::Failure(DTRUN_OUT_OF_MEMORY, "out of memory in the middle of a call"));
  }
  last_completed_.store(running.op->sequence, std::memory_order_relaxed);
}

void HierarchyCommunicator::Abandon(const sdk::Running& running) {
  ending_.End(
      sdk::Failure(DTRUN_TIMEOUT, fmt::format("{} did not end within {}", Describe(*running.op, name_),
                                              FormatDuration(Nanoseconds(running.deadline.timeout_ns())))));
}

void HierarchyCommunicator::Abort(const std::string& reason) {
  if (sole_ != nullptr) return sole_->Abort(reason);
  ending_.Abort(reason);
}

void HierarchyCommunicator::Snapshot(const sdk::SnapshotSink& sink) {
  if (sole_ != nullptr) return sole_->Snapshot(sink);
  sink.Line(fmt::format("rank {} on host {} of {}: collectives started up to {}, completed up to {}",
                        topology_.rank, topology_.host(), topology_.hosts(), last_started_.load(),
                        last_completed_.load()));
  if (ending_.failure()) sink.Line(std::string("failed: ") + ending_.failure()->what());
  local_->Snapshot(sink);
  if (wire_) wire_->Snapshot(sink);
  if (messages_) messages_->Snapshot(sink);
}

dtrun_backend_comm* HierarchyCommunicator::Wire(const dtrun_wrapped** out_wrapped) const {
  *out_wrapped = topology_.Together() ? nullptr : &wire_plugin_;
  return wire_ ? wire_->raw() : nullptr;
}

void HierarchyCommunicator::MemRegister(const dtrun_mem_params& params, void* memory) {
  const auto [wire, messages] = Wires();
  if (wire != nullptr) wire->Register(params, memory);
  if (messages == nullptr) return;
  try {
    messages->Register(params, memory);
  } catch (...) {
    if (wire != nullptr) wire->Deregister(memory);
    throw;
  }
}

void HierarchyCommunicator::MemDeregister(void* memory) {
  for (Layer* const layer : Wires()) {
    if (layer != nullptr) layer->Deregister(memory);
  }
}

}  // namespace dtrun::comm

#include "core/comm/hierarchy/hierarchy.h"

#include "core/comm/composed.h"
#include "core/comm/hierarchy/communicator.h"

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
  caps.flags = local.flags & wire.flags & (DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE);
  caps.flags |= wire.flags & DTRUN_CAP_LAZY_CONNECT;
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
  return std::make_unique<HierarchyCommunicator>(layers, CapsOf(layers),
                                                 sdk::internal::ReadCommParams(host, params));
}

}  // namespace

const dtrun_backend& HierarchyBackend() {
  return ComposedBackend<Layers, HierarchyCommunicator, CapsOf, Make, QuerySupport>();
}

}  // namespace dtrun::comm

#include "core/comm/staging/staging.h"

#include "core/comm/composed.h"
#include "core/comm/staging/communicator.h"

namespace dtrun::comm {
namespace {

// The wire's capabilities, for device memory.
dtrun_backend_caps CapsOfStaging(const Staging& staging) {
  dtrun_backend_caps caps = CapsOfTable(staging.wire.table, staging.wire.instance);
  caps.features &= DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE | DTRUN_CAP_LAZY_CONNECT | DTRUN_CAP_LOSSY;
  caps.device_kinds = std::uint64_t{1} << staging.device.table->kind;
  return caps;
}

dtrun_status WireSupports(const Staging& staging, const dtrun_support_query* query, dtrun_error* err) {
  const Carrier& wire = staging.wire;
  if (wire.table.query_support == nullptr) return DTRUN_OK;
  dtrun_support_query of_host = sdk::internal::ReadStruct(query);
  of_host.device_kind = DTRUN_DEVICE_HOST;
  of_host.device_index = -1;
  return wire.table.query_support(wire.instance, &of_host, err);
}

std::unique_ptr<StagingCommunicator> MakeStaged(const Staging& staging, const sdk::Host&,
                                                const dtrun_comm_params* params) {
  return std::make_unique<StagingCommunicator>(staging,
                                               sdk::internal::ReadKnown(params, "dtrun_comm_params"));
}

}  // namespace

const dtrun_backend& StagingBackend() {
  return ComposedBackend<Staging, StagingCommunicator, CapsOfStaging, MakeStaged, WireSupports>();
}

}  // namespace dtrun::comm

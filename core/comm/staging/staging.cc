#include "core/comm/staging/staging.h"

#include "core/comm/staging/communicator.h"

namespace dtrun::comm {
namespace {

const Staging& Of(dtrun_instance* self) { return *reinterpret_cast<const Staging*>(self); }

// Provides the table's slots for a communicator and its requests; the instance is written by hand.
class Slots : public sdk::Backend<StagingCommunicator> {
 public:
  sdk::Caps QueryCaps() const override { return {}; }
  std::unique_ptr<StagingCommunicator> CreateCommunicator(const sdk::CommParams&) override { return {}; }
};

// The wire's capabilities, for device memory.
dtrun_status QueryCaps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const Staging& staging = Of(self);
    dtrun_backend_caps caps;
    DTRUN_INIT(caps);
    sdk::Check(
        [&](dtrun_error* e) { return staging.wire.table.query_caps(staging.wire.instance, &caps, e); });
    caps.flags &= DTRUN_CAP_ABORT | DTRUN_CAP_ANY_SOURCE | DTRUN_CAP_LAZY_CONNECT;
    caps.device_kinds = std::uint64_t{1} << staging.device.table->kind;
    sdk::internal::WriteStruct(out, caps);
    return dtrun_status{DTRUN_OK};
  });
}

dtrun_status QuerySupport(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  const Carrier& wire = Of(self).wire;
  if (wire.table.query_support == nullptr) return DTRUN_OK;
  dtrun_support_query of_host = sdk::internal::ReadStruct(query);
  of_host.device_kind = DTRUN_DEVICE_HOST;
  of_host.device_index = -1;
  return wire.table.query_support(wire.instance, &of_host, err);
}

dtrun_status CommCreate(dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm** out,
                        dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const Staging& staging = Of(self);
    using Comm = sdk::internal::Comm<StagingCommunicator>;
    auto made =
        std::make_unique<StagingCommunicator>(staging, sdk::internal::ReadKnown(params, "dtrun_comm_params"));
    *out = sdk::internal::As<dtrun_backend_comm>(new Comm{sdk::Host(staging.services), std::move(made)});
    return dtrun_status{DTRUN_OK};
  });
}

}  // namespace

const dtrun_backend& StagingBackend() {
  static const dtrun_backend table = [] {
    dtrun_backend t = sdk::internal::BackendSlots<Slots>::Table();
    t.query_caps = QueryCaps;
    t.query_support = QuerySupport;
    t.comm_create = CommCreate;
    return t;
  }();
  return table;
}

}  // namespace dtrun::comm

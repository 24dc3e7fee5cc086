// The table of a backend that is made of others (hierarchy/, staging/): its instance is the state that names
// them.
//
// Constant tables; thread classes as in dtrun/abi/backend.h.
#pragma once

#include <memory>
#include <utility>

#include "core/plugin/normalise.h"
#include "dtrun/plugin/backend.hpp"

namespace dtrun::comm {

// What the backend of a table can do.
inline dtrun_backend_caps CapsOfTable(const dtrun_backend& table, dtrun_instance* instance) {
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  sdk::Check([&](dtrun_error* error) { return table.query_caps(instance, &caps, error); });
  plugin::RemoveOtherDraft(table, &caps);
  return caps;
}

// `State` has the host's services as `services`. `caps`: what it can do; `make`: a communicator from its
// params; `support`: the query_support of those it is made of. All may throw.
template <class State, class Comm, dtrun_backend_caps (*caps)(const State&),
          std::unique_ptr<Comm> (*make)(const State&, const sdk::Host&, const dtrun_comm_params*),
          dtrun_status (*support)(const State&, const dtrun_support_query*, dtrun_error*)>
const dtrun_backend& ComposedBackend() {
  // Provides the slots for a communicator and its requests.
  class Slots : public sdk::Backend<Comm> {
   public:
    sdk::Caps QueryCaps() const override { return {}; }
    std::unique_ptr<Comm> CreateCommunicator(const sdk::CommParams&) override { return {}; }
  };
  static const dtrun_backend table = [] {
    dtrun_backend t = sdk::internal::BackendSlots<Slots>::Table();
    t.query_caps = [](dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
      return sdk::Guard(err, [&] {
        sdk::internal::WriteStruct(out, caps(*reinterpret_cast<const State*>(self)));
        return dtrun_status{DTRUN_OK};
      });
    };
    t.query_support = [](dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
      return sdk::Guard(err, [&] {
        sdk::internal::ReadKnown(query, "dtrun_support_query");
        return support(*reinterpret_cast<const State*>(self), query, err);
      });
    };
    t.comm_create = [](dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm** out,
                       dtrun_error* err) {
      return sdk::Guard(err, [&] {
        const State& state = *reinterpret_cast<const State*>(self);
        const sdk::Host host(state.services);
        auto made = make(state, host, params);
        *out = sdk::internal::As<dtrun_backend_comm>(new sdk::internal::Comm<Comm>{host, std::move(made)});
        return dtrun_status{DTRUN_OK};
      });
    };
    return t;
  }();
  return table;
}

}  // namespace dtrun::comm

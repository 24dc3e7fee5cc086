// Staging behind a plugin's entry point, for the conformance suite: a device plugin, and another backend or
// the shared-memory engine as wire. Rank r uses device r modulo their number.
#include <array>
#include <memory>
#include <string>

#include "core/comm/shm/backend.h"
#include "core/comm/staging/staging.h"
#include "core/comm/testing/load_plugin.h"
#include "dtrun/plugin.hpp"

namespace {

using dtrun::comm::Staging;
using dtrun::comm::testing::LoadPlugin;
namespace sdk = dtrun::sdk;

struct Parts {
  Staging staging;
  const dtrun_plugin* wire = nullptr;
  const dtrun_plugin* device = nullptr;
  std::int32_t devices = 0;
};

Parts& Of(dtrun_instance* self) { return *reinterpret_cast<Parts*>(self); }
const dtrun_backend& Table() { return dtrun::comm::StagingBackend(); }

dtrun_status Create(dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm** out,
                    dtrun_error* err) {
  Parts& parts = Of(self);
  dtrun_comm_params own = sdk::internal::ReadStruct(params);
  own.device_kind = parts.staging.device.table->kind;
  own.device_index = own.rank % parts.devices;
  return Table().comm_create(dtrun::comm::AsInstance(&parts.staging), &own, out, err);
}

// The suite uses host memory and no stream.
dtrun_status QueryCaps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  dtrun_backend_caps caps;
  DTRUN_INIT(caps);
  const dtrun_status status = Table().query_caps(dtrun::comm::AsInstance(&Of(self).staging), &caps, err);
  if (status != DTRUN_OK) return status;
  caps.device_kinds = sdk::Bits({DTRUN_DEVICE_HOST});
  sdk::internal::WriteStruct(out, caps);
  return DTRUN_OK;
}

dtrun_status QuerySupport(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  return Table().query_support(dtrun::comm::AsInstance(&Of(self).staging), query, err);
}

dtrun_status Init(const dtrun_init_params* given, dtrun_instance** out, dtrun_error* err) {
  return sdk::Guard(err, [&] {
    const dtrun_init_params params = sdk::internal::ReadKnown(given, "dtrun_init_params");
    const dtrun_host* const host = params.host;
    const dtrun_options* const options = params.options;
    const sdk::Options values(sdk::Host(host), options);
    auto parts = std::make_unique<Parts>();
    const std::string wire = values.String("wire");
    parts->wire = wire.empty() ? &dtrun::shm::EnginePlugin() : LoadPlugin(wire, host);
    parts->device = LoadPlugin(values.String("device"), host);
    Staging& staging = parts->staging;
    staging.services = host;
    staging.coreless = true;
    staging.wire.table = *parts->wire->backend;
    staging.wire.name = parts->wire->name;
    staging.device = {parts->device->device, nullptr, parts->device->name};
    sdk::Check([&](dtrun_error* e) {
      return sdk::InitPlugin(*parts->wire, host, options, &staging.wire.instance, e);
    });
    sdk::Check([&](dtrun_error* e) {
      return sdk::InitPlugin(*parts->device, host, options, &staging.device.instance, e);
    });
    sdk::Check([&](dtrun_error* e) {
      return staging.device.table->count(staging.device.instance, &parts->devices, e);
    });
    *out = reinterpret_cast<dtrun_instance*>(parts.release());
    return dtrun_status{DTRUN_OK};
  });
}

void Shutdown(dtrun_instance* self) {
  Parts* const parts = &Of(self);
  parts->device->shutdown(parts->staging.device.instance);
  parts->wire->shutdown(parts->staging.wire.instance);
  delete parts;
}

}  // namespace

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static const std::array<dtrun_option, 3> options = {
      sdk::Option("wire", DTRUN_TYPE_STRING, "", "file of a backend plugin"),
      sdk::Option("device", DTRUN_TYPE_STRING, "", "file of a device plugin"),
      // The one option that gloo requires.
      sdk::Option("interface", DTRUN_TYPE_STRING, "lo", "of the wire")};
  static const dtrun_backend backend = [] {
    dtrun_backend table = Table();
    table.query_caps = QueryCaps;
    table.query_support = QuerySupport;
    table.comm_create = Create;
    return table;
  }();
  static const dtrun_plugin plugin = [] {
    dtrun_plugin table = dtrun::shm::EnginePlugin();
    table.name = "staging";
    table.summary = "staging over another backend, for tests";
    table.options = options.data();
    table.option_count = options.size();
    table.init = Init;
    table.shutdown = Shutdown;
    table.backend = &backend;
    return table;
  }();
  return sdk::Enter(plugin, host, out, err);
}

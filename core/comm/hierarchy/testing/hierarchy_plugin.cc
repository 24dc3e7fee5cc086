// The hierarchy behind a plugin's entry point, for the conformance suite: the shared-memory engine inside
// hosts; between them another plugin, or the engine again.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/comm/hierarchy/hierarchy.h"
#include "core/comm/shm/backend.h"
#include "core/comm/testing/load_plugin.h"

namespace {

using dtrun::comm::Layers;
using dtrun::comm::testing::LoadPlugin;

constexpr char kWire[] = "wire";
constexpr char kHosts[] = "hosts";
constexpr char kDeal[] = "deal";
constexpr const char* kDeals[] = {"blocks", "cards"};

// Ranks may be threads of one process or of many, so each host is derived from the rank's number.
struct Ranks {
  std::vector<Layers> layers;  // by host
  const dtrun_plugin* wire = nullptr;
  bool cards = false;
};

const dtrun_backend& Hierarchy() { return dtrun::comm::HierarchyBackend(); }

dtrun_status Create(dtrun_instance* self, const dtrun_comm_params* params, dtrun_backend_comm** out,
                    dtrun_error* err) {
  auto& ranks = *reinterpret_cast<Ranks*>(self);
  const int hosts = std::min(static_cast<int>(ranks.layers.size()), params->size);
  const int host = ranks.cards ? params->rank % hosts : params->rank * hosts / params->size;
  auto* const layers = &ranks.layers[static_cast<std::size_t>(host)];
  return Hierarchy().comm_create(dtrun::comm::AsInstance(layers), params, out, err);
}

dtrun_status QueryCaps(dtrun_instance* self, dtrun_backend_caps* out, dtrun_error* err) {
  auto& ranks = *reinterpret_cast<Ranks*>(self);
  return Hierarchy().query_caps(dtrun::comm::AsInstance(&ranks.layers.front()), out, err);
}

dtrun_status QuerySupport(dtrun_instance* self, const dtrun_support_query* query, dtrun_error* err) {
  auto& ranks = *reinterpret_cast<Ranks*>(self);
  return Hierarchy().query_support(dtrun::comm::AsInstance(&ranks.layers.front()), query, err);
}

dtrun_status Init(const dtrun_init_params* given, dtrun_instance** out, dtrun_error* err) {
  return dtrun::sdk::Guard(err, [&] {
    const dtrun_init_params params = dtrun::sdk::internal::ReadKnown(given, "dtrun_init_params");
    const dtrun_host* const host = params.host;
    const dtrun_options* const options = params.options;
    const dtrun::sdk::Options values(dtrun::sdk::Host(host), options);
    auto ranks = std::make_unique<Ranks>();
    ranks->cards = values.EnumIndex(kDeal) == 1;
    Layers layers;
    layers.services = host;
    layers.coreless = true;
    const dtrun_plugin& engine = dtrun::shm::EnginePlugin();
    const std::string wire = values.String(kWire);
    ranks->wire = wire.empty() ? &engine : LoadPlugin(wire, host);
    layers.local = *engine.backend;
    layers.wire = *ranks->wire->backend;
    dtrun::sdk::Check([&](dtrun_error* error) {
      return dtrun::sdk::InitPlugin(engine, host, options, &layers.local_instance, error);
    });
    dtrun::sdk::Check([&](dtrun_error* error) {
      return dtrun::sdk::InitPlugin(*ranks->wire, host, options, &layers.wire_instance, error);
    });
    ranks->layers.assign(static_cast<std::size_t>(values.Int(kHosts)), layers);
    for (std::size_t number = 0; number < ranks->layers.size(); ++number) {
      ranks->layers[number].host = static_cast<int>(number);
    }
    *out = reinterpret_cast<dtrun_instance*>(ranks.release());
    return dtrun_status{DTRUN_OK};
  });
}

void Shutdown(dtrun_instance* self) {
  auto* const ranks = reinterpret_cast<Ranks*>(self);
  dtrun::shm::EnginePlugin().shutdown(ranks->layers.front().local_instance);
  ranks->wire->shutdown(ranks->layers.front().wire_instance);
  delete ranks;
}

}  // namespace

dtrun_status dtrun_plugin_entry_v1(const dtrun_host* host, const dtrun_plugin** out, dtrun_error* err) {
  static const std::array<dtrun_option, 4> options = [] {
    dtrun_option wire = dtrun::sdk::Option(kWire, DTRUN_TYPE_STRING, "", "file of a backend plugin");
    // The one option that gloo requires.
    dtrun_option interface = dtrun::sdk::Option("interface", DTRUN_TYPE_STRING, "lo", "of the wire");
    dtrun_option hosts = dtrun::sdk::Option(kHosts, DTRUN_TYPE_UINT, "2", "hosts that the ranks pretend");
    dtrun_option deal = dtrun::sdk::Option(kDeal, DTRUN_TYPE_ENUM, "blocks", "how ranks are dealt to them");
    deal.choices = kDeals;
    deal.choice_count = 2;
    return std::array<dtrun_option, 4>{wire, interface, hosts, deal};
  }();
  static const dtrun_backend backend = [] {
    dtrun_backend table = Hierarchy();
    table.query_caps = QueryCaps;
    table.query_support = QuerySupport;
    table.comm_create = Create;
    return table;
  }();
  static const dtrun_plugin plugin = [] {
    dtrun_plugin table = dtrun::shm::EnginePlugin();
    table.name = "hierarchy";
    table.summary = "two layers of shared memory, for tests";
    table.options = options.data();
    table.option_count = options.size();
    table.init = Init;
    table.shutdown = Shutdown;
    table.backend = &backend;
    return table;
  }();
  return dtrun::sdk::Enter(plugin, host, out, err);
}

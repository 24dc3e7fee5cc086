#include "context.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace dtrun::ucx_plugin {
namespace {

// How often UCX asks whether a silent peer is alive.
constexpr const char* kKeepalive = "2s";
constexpr const char* kRendezvousBytes = "2M";
constexpr const char* kSegmentBytes = "256K";

}  // namespace

Context::Context(const Library& library, Selection selection, std::optional<std::int64_t> rails)
    : library_(library), selection_(std::move(selection)) {
  ucp_config_t* raw = nullptr;
  library.Check(library.config_read(nullptr, nullptr, &raw), "read UCX's configuration");
  const std::unique_ptr<ucp_config_t, decltype(library.config_release)> config(raw, library.config_release);
  const auto set = [&](const char* name, const std::string& value) {
    library.Check(library.config_modify(config.get(), name, value.c_str()),
                  std::string("set UCX's ") + name + " to '" + value + "'");
  };
  set("TLS", selection_.transports);
  set("NET_DEVICES", selection_.devices);
  set("KEEPALIVE_INTERVAL", kKeepalive);
  // Without it UCX holds that shared memory cannot notice a dead peer, and takes TCP instead.
  set("MM_ERROR_HANDLING", "y");
  // Over TCP, UCX 1.13 starts a rendezvous far too early (32 KiB took twice as long as sent at once)
  // and cuts messages into pieces of 8 KiB.
  const auto& usable = selection_.usable;
  if (std::none_of(usable.begin(), usable.end(), [](const Resource& one) { return one.rdma(); })) {
    if (getenv("UCX_RNDV_THRESH") == nullptr) set("RNDV_THRESH", kRendezvousBytes);
    // UCX 1.22 refuses these, and does without.
    for (const char* name : {"TX_SEG_SIZE", "RX_SEG_SIZE"})
      static_cast<void>(library.config_modify(config.get(), name, kSegmentBytes));
  }
  if (rails) set("MAX_RNDV_RAILS", std::to_string(*rails));

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;  // each communicator has a worker and a thread
  params.name = "dtrun";
  library.Check(
      library.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config.get(), &context_),
      "start UCX with transports '" + selection_.transports + "' over devices '" + selection_.devices + "'");
}

Context::~Context() { library_.cleanup(context_); }

}  // namespace dtrun::ucx_plugin

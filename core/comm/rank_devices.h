// The devices of a rank: loads device plugins and the device backend when a communicator first needs them.
//
// Owned by the runtime; any thread. Everything it loads stays until it ends, after all communicators.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/comm/devices.h"
#include "core/comm/environment.h"
#include "core/comm/plugin_call.h"
#include "core/comm/staging/staging.h"
#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"

namespace dtrun::comm {

// A plugin that the job has named, loaded and started, each under a watch that names it. The owner ends the
// instance with shutdown.
struct StartedPlugin {
  const plugin::Plugin* plugin = nullptr;
  dtrun_instance* instance = nullptr;
};

// `options` receives the setting's options and outlives the instance. `options_name`: the variable's name,
// for messages. `limit`, `report`: as in PluginCall.
Result<StartedPlugin> StartPlugin(plugin::Kind kind, const PluginSetting& setting, const char* options_name,
                                  dtrun_options& options, Nanoseconds limit, const PluginReport& report);

class RankDevices final : public Devices {
 public:
  // `host` carries host memory. `backend`: the backend plugin below it, which may also move device memory.
  RankDevices(const Environment& environment, Carrier host, Carrier backend, Nanoseconds limit,
              PluginReport report)
      : environment_(environment),
        host_(std::move(host)),
        backend_(std::move(backend)),
        limit_(limit),
        report_(std::move(report)) {}
  ~RankDevices() override;

  Result<const Device*> Plugin(std::int32_t kind) override;
  Result<Carrier> CarrierOf(std::int32_t kind) override;
  // An operation will never end: shut nothing down.
  void LeaveRunning() { stuck_ = true; }

 private:
  // All of them REQUIRE mutex_.
  Result<const Device*> PluginLocked(std::int32_t kind);
  Result<const Device*> Start(const PluginSetting& setting);
  // Files that may serve the kind, from the job's list or the search path.
  Result<std::vector<PluginSetting>> Candidates(std::int32_t kind) const;
  Result<Carrier> DeviceBackend();
  Result<Carrier> StagingOver(const Carrier& wire, std::int32_t kind, std::string name);

  const Environment& environment_;
  const Carrier host_, backend_;
  const Nanoseconds limit_;
  const PluginReport report_;
  bool stuck_ = false;

  std::mutex mutex_;
  dtrun_options none_, backend_options_;          // outlive the instances
  std::map<std::string, StartedPlugin> plugins_;  // by path
  std::map<std::int32_t, Device> devices_;        // by kind
  StartedPlugin device_backend_;
  std::map<std::int32_t, std::unique_ptr<Staging>> staging_;  // by kind
};

}  // namespace dtrun::comm

// Loading a plugin that the job has named, and starting it, each under a watch that names it.
//
// The instance is the caller's, who ends it with shutdown. From one thread at a time.
#pragma once

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/comm/environment.h"
#include "core/comm/plugin_call.h"
#include "core/options/snapshot.h"
#include "core/plugin/plugin.h"

namespace dtrun::comm {

struct StartedPlugin {
  const plugin::Plugin* plugin = nullptr;
  dtrun_instance* instance = nullptr;
};

// `options` takes what the setting holds and outlives the instance. `options_name`: of the variable, for
// messages. `limit`, `report`: of PluginCall.
Result<StartedPlugin> StartPlugin(plugin::Kind kind, const PluginSetting& setting, const char* options_name,
                                  dtrun_options& options, Nanoseconds limit, const PluginReport& report);

}  // namespace dtrun::comm

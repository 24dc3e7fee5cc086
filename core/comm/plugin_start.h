// Loads a plugin that the job has named and starts it, each under a watch that names the plugin.
//
// The caller owns the instance and ends it with shutdown. From one thread at a time.
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

// `options` receives the setting's options and outlives the instance. `options_name`: the variable's name,
// for messages. `limit`, `report`: as in PluginCall.
Result<StartedPlugin> StartPlugin(plugin::Kind kind, const PluginSetting& setting, const char* options_name,
                                  dtrun_options& options, Nanoseconds limit, const PluginReport& report);

}  // namespace dtrun::comm

// Converts a plugin's tables to this build's layout.
//
// Plugins may be older or newer than this build. Afterwards every member exists. Members that the
// plugin does not know are zero, which always means absent; texts are never null. Pure; any thread.
#pragma once

#include "core/plugin/plugin_file.h"

namespace dtrun::plugin {

struct Tables {
  dtrun_plugin plugin{};
  dtrun_backend backend{};    // zero unless the kind is backend
  dtrun_launcher launcher{};  // zero unless the kind is launcher
  dtrun_device device{};      // zero unless the kind is device
};

// `raw` is borrowed and stays valid because plugins are never unloaded. Fills version and ABI of
// `identity` as soon as they are known, so that errors show them.
Result<Tables> Normalise(Identity* identity, const dtrun_plugin* raw);

// A bit of `flags` of the backend of Tables: the plugin has another draft of the device ABI, or none.
inline constexpr std::uint32_t kOtherDeviceDraft = 1u << 15;

// Removes from the capabilities of such a backend what they say of devices.
void RemoveOtherDraft(const dtrun_backend& table, dtrun_backend_caps* caps);

}  // namespace dtrun::plugin

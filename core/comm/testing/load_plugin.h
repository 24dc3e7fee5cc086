// Loads the table of a plugin's file, for plugins of the conformance suites that wrap others.
//
// The file stays loaded. Any thread.
#pragma once

#include <dlfcn.h>

#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::comm::testing {

// Throws sdk::Failure with the loader's reason.
inline const dtrun_plugin* LoadPlugin(const std::string& file, const dtrun_host* host) {
  void* const image = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (image == nullptr) throw sdk::Failure(DTRUN_NOT_FOUND, dlerror());
  const auto entry = reinterpret_cast<dtrun_plugin_entry>(dlsym(image, DTRUN_PLUGIN_ENTRY_SYMBOL));
  const dtrun_plugin* plugin = nullptr;
  sdk::Check([&](dtrun_error* error) { return entry(host, &plugin, error); });
  return plugin;
}

}  // namespace dtrun::comm::testing

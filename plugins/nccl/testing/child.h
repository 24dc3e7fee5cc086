// Runs something in a process of its own, for what a process can do only once: reading NCCL's
// environment, touching a device.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>

namespace dtrun::nccl_test {

// The plugin that is tried: that of the build, or what DTRUN_NCCL_PLUGIN names where the test was carried to
// another machine.
inline std::string PluginFile() {
  const char* const named = std::getenv("DTRUN_NCCL_PLUGIN");
  return named != nullptr ? named : NCCL_PLUGIN_FILE;
}
// The library that the build found; empty: the loader's, as on another machine.
inline std::string LibraryFile() { return std::getenv("DTRUN_NCCL_PLUGIN") != nullptr ? "" : REAL_NCCL_FILE; }

// What `body` returned in the child, or the text of the exception it threw.
std::string InChild(const std::function<std::string()>& body);

}  // namespace dtrun::nccl_test

#include "load.h"

#include <dlfcn.h>

#include <filesystem>
#include <regex>
#include <stdexcept>

#include "host.h"
#include "own_process.h"

namespace dtrun::conformance {

dtrun_plugin_entry OpenPlugin(const std::string& file) {
  const std::string path = std::filesystem::absolute(file);  // the loader looks elsewhere for a bare name
  void* const image = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (image == nullptr) throw std::runtime_error(std::string("load the plugin: ") + dlerror());
  const auto entry = reinterpret_cast<dtrun_plugin_entry>(dlsym(image, DTRUN_PLUGIN_ENTRY_SYMBOL));
  if (entry == nullptr) throw std::runtime_error("'" + file + "' has no " DTRUN_PLUGIN_ENTRY_SYMBOL);
  return entry;
}

const dtrun_plugin* LoadPlugin(const std::string& file, std::int32_t kind) {
  const dtrun_plugin* plugin = nullptr;
  dtrun_error error;
  DTRUN_ERROR_INIT(error);
  const dtrun_plugin_entry entry = OpenPlugin(file);
  dtrun_status status = DTRUN_OK;
  try {
    status = entry(Host(kind), &plugin, &error);
    EndIfCopied();
  } catch (const std::exception& exception) {
    throw std::runtime_error(std::string("an exception left the entry (E1): ") + exception.what());
  }
  if (status != DTRUN_OK) throw std::runtime_error(std::string("the entry failed: ") + error.message);
  if (plugin == nullptr) throw std::runtime_error("the entry returned DTRUN_OK and no table");
  if (plugin->kind != kind) {
    throw std::runtime_error("the table is of kind " + std::to_string(plugin->kind) +
                             ", the file's name says " + std::to_string(kind));
  }
  return plugin;
}

FileName NameOfFile(const std::string& file) {
  static const std::regex kPattern("libdtrun_(backend|launcher|device)_([a-z][a-z0-9_-]{0,31})\\.so");
  std::smatch parts;
  const std::string name = std::filesystem::path(file).filename();
  if (!std::regex_match(name, parts, kPattern)) return {};
  const std::int32_t kind = parts[1] == "backend"    ? DTRUN_KIND_BACKEND
                            : parts[1] == "launcher" ? DTRUN_KIND_LAUNCHER
                                                     : DTRUN_KIND_DEVICE;
  return {kind, parts[2]};
}

}  // namespace dtrun::conformance

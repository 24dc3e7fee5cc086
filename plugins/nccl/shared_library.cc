#include "shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

SharedLibrary::SharedLibrary(void* handle, const std::string& name, bool was_loaded)
    : handle_(handle), path_(name), was_loaded_(was_loaded) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && *map->l_name != '\0') path_ = map->l_name;
}

std::optional<SharedLibrary> SharedLibrary::FindLoaded(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle != nullptr) return SharedLibrary(handle, name, true);
  }
  return std::nullopt;
}

SharedLibrary SharedLibrary::Open(const std::vector<std::string>& names, const std::string& product,
                                  const std::string& advice) {
  if (auto loaded = FindLoaded(names)) return *std::move(loaded);
  std::string reasons;
  for (const std::string& name : names) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle != nullptr) return SharedLibrary(handle, name, false);
    const char* const reason = dlerror();
    reasons.append(reasons.empty() ? "" : "; ").append(reason != nullptr ? reason : name);
  }
  throw sdk::Failure(DTRUN_NOT_FOUND, "cannot load " + product + ": " + reasons + "; " + advice);
}

void* SharedLibrary::FindSymbol(const char* name) const { return dlsym(handle_, name); }

void* SharedLibrary::Symbol(const char* name) const {
  void* const symbol = FindSymbol(name);
  if (symbol == nullptr) {
    throw sdk::Failure(DTRUN_NOT_FOUND, "'" + path_ + "' has no function '" + name +
                                            "'; install a complete, newer version of it");
  }
  return symbol;
}

}  // namespace dtrun::nccl_plugin

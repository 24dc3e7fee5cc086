// dtrun/plugin/shared_library.hpp - a vendor's library, opened at run time, and its symbols by name.
//
// Not part of plugin.hpp. A plugin that linked the library would fail with "undefined symbol" on other
// versions of it, and could not even be listed on hosts without it. Values; copies share the library, which
// is never closed, because such libraries keep threads. Any thread.
//
//   struct Api {
//     explicit Api(dtrun::sdk::SharedLibrary from) : library(std::move(from)) {}
//     dtrun::sdk::SharedLibrary library;
//     decltype(&::vendor_send) send = library["vendor_send"];
//   };
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtrun/plugin/failure.hpp"

namespace dtrun::sdk {
inline namespace v1 __attribute__((visibility("hidden"))) {

  // The address of a function or an object, convertible to any pointer type.
  class Symbol {
   public:
    explicit Symbol(void* address) : address_(address) {}
    template <class T>
    operator T*() const {
      return reinterpret_cast<T*>(address_);
    }
    bool present() const { return address_ != nullptr; }

   private:
    void* address_;
  };

  // The file of the library or program that holds `address`.
  inline std::string FileOf(const void* address) {
    Dl_info info{};
    return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "unknown";
  }

  class SharedLibrary {
   public:
    // The first of `names` that is already loaded in this process.
    static std::optional<SharedLibrary> FindLoaded(const std::vector<std::string>& names) {
      for (const std::string& name : names) {
        void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (handle != nullptr) return SharedLibrary(handle, name, true);
      }
      return std::nullopt;
    }
    // The same, else the first that can be loaded. Throws Failure with the loader's error for each;
    // `product` and `advice` go into that text.
    static SharedLibrary Open(const std::vector<std::string>& names, const std::string& product,
                              const std::string& advice) {
      if (std::optional<SharedLibrary> loaded = FindLoaded(names)) return *std::move(loaded);
      std::string reasons;
      for (const std::string& name : names) {
        void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle != nullptr) return SharedLibrary(handle, name, false);
        const char* const reason = dlerror();
        reasons.append(reasons.empty() ? "" : "; ").append(reason != nullptr ? reason : name);
      }
      throw Failure(DTRUN_NOT_FOUND, "cannot load " + product + ": " + reasons + "; " + advice);
    }
    // What dlopen gave for `name`.
    SharedLibrary(void* handle, const std::string& name, bool was_loaded)
        : handle_(handle), path_(name), was_loaded_(was_loaded) {
      const link_map* map = nullptr;
      if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && *map->l_name != '\0') path_ = map->l_name;
    }

    // The file; never empty.
    const std::string& path() const { return path_; }
    // True when it was in the process before this plugin asked for it.
    bool was_loaded() const { return was_loaded_; }

    // Throws Failure when there is no such symbol.
    Symbol operator[](const char* name) const {
      const Symbol symbol = Find(name);
      if (symbol.present()) return symbol;
      throw Failure(DTRUN_NOT_FOUND,
                    "'" + path_ + "' has no '" + name + "'; install a complete, newer version of it");
    }
    Symbol Find(const char* name) const { return Symbol(dlsym(handle_, name)); }

   private:
    void* handle_;
    std::string path_;
    bool was_loaded_;
  };

}  // namespace v1
}  // namespace dtrun::sdk

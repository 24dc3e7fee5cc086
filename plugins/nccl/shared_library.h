// A vendor's shared library in this process, and its functions by name.
//
// A value; copies share the library, which is never unloaded. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrun::nccl_plugin {

class SharedLibrary {
 public:
  // None; only assignment and destruction are legal.
  SharedLibrary() = default;

  // The first of `names` that somebody has loaded already.
  static std::optional<SharedLibrary> FindLoaded(const std::vector<std::string>& names);
  // The first of `names` that can be loaded. Throws sdk::Failure with the loader's words about
  // each; `product` and `advice` go into that text.
  static SharedLibrary Open(const std::vector<std::string>& names, const std::string& product,
                            const std::string& advice);

  // The file; never empty.
  const std::string& path() const { return path_; }
  // True when it was in the process before this plugin asked for it.
  bool was_loaded() const { return was_loaded_; }

  // Throws sdk::Failure when there is no such function.
  template <class Function>
  void Resolve(const char* name, Function*& out) const {
    out = reinterpret_cast<Function*>(Symbol(name));
  }
  // Leaves null in `out` instead.
  template <class Function>
  void ResolveIfPresent(const char* name, Function*& out) const {
    out = reinterpret_cast<Function*>(FindSymbol(name));
  }

 private:
  SharedLibrary(void* handle, const std::string& name, bool was_loaded);
  void* FindSymbol(const char* name) const;
  void* Symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string path_;
  bool was_loaded_ = false;
};

}  // namespace dtrun::nccl_plugin

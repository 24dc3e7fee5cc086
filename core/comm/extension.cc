#include "core/comm/extension.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/number.h"
#include "core/base/text.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::comm {
namespace {

// A wrapper that names itself as the plugin below must not be followed for ever.
constexpr std::size_t kMostPlugins = 32;

bool IsIdWord(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '_' || c == '-';
  });
}

// <vendor>.<name>/<revision>, as rule S13 has it.
bool IsExtensionId(std::string_view id) {
  const std::size_t dot = id.find('.'), slash = id.find('/');
  if (dot == id.npos || slash == id.npos || slash < dot) return false;
  const std::string_view revision = id.substr(slash + 1);
  return IsIdWord(id.substr(0, dot)) && IsIdWord(id.substr(dot + 1, slash - dot - 1)) &&
         NumberOf<std::uint32_t>(revision) && revision.front() != '0';
}

// A backend, and its communicator on this rank.
struct Carrying {
  Extensions extensions;
  dtrun_instance* instance = nullptr;
  dtrun_backend_comm* comm = nullptr;
};

class ExtensionSearch {
 public:
  ExtensionSearch(const Making& making, const char* id) : making_(making), id_(id) {}

  // True if the backend, or one that it stands on, has it.
  bool Find(Carrying at, dtrun_extension& found) {
    while (asked_.size() < kMostPlugins) {
      const dtrun_plugin* const plugin = at.extensions.plugin;
      auto below = at.extensions.below;
      std::optional<PluginCall> call;
      if (plugin != nullptr) {
        asked_.push_back(fmt::format("'{}'", plugin->name));
        call.emplace(fmt::format("backend '{}', in get_extension", plugin->name), making_.Limit(),
                     making_.report, std::function<std::string()>(), making_.Due(true));
        if (plugin->get_extension == nullptr) return false;
        if (const void* table = plugin->get_extension(at.instance, id_)) {
          found = {sizeof found, 0, table, at.comm, plugin->name};
          return true;
        }
        const auto* wrapper = static_cast<const dtrun_wrapper_extension*>(
            plugin->get_extension(at.instance, DTRUN_WRAPPER_EXTENSION));
        if (wrapper != nullptr && wrapper->struct_size >= sdk::internal::kFloor<dtrun_wrapper_extension>)
          below = wrapper->below;
      }
      if (below == nullptr) return false;
      const dtrun_wrapped* wrapped = nullptr;
      dtrun_backend_comm* const comm = below(at.instance, at.comm, &wrapped);
      if (wrapped == nullptr || wrapped->plugin == nullptr) return false;
      at = {{wrapped->plugin}, wrapped->instance, comm};
    }
    return false;
  }

  Error NotFound() const {
    if (asked_.empty()) {
      return {
          DTRUN_NOT_FOUND,
          fmt::format("extension: '{}' has no extension '{}': dtrun's own backend '{}' carries it, and no "
                      "plugin; {}",
                      making_.name, id_, making_.backend_name,
                      making_.kv == nullptr ? "start the program with dtrun" : "set comm.local = \"none\"")};
    }
    return {
        DTRUN_NOT_FOUND,
        fmt::format("extension: no backend that carries '{}' has the extension '{}' (asked: {}); its author "
                    "says which release does",
                    making_.name, id_, fmt::join(asked_, ", "))};
  }

 private:
  const Making& making_;
  const char* const id_;
  std::vector<std::string> asked_;
};

}  // namespace

Result<dtrun_extension> FindExtension(const Making& making, std::span<const Route* const> routes,
                                      const char* id) {
  if (id == nullptr || !IsExtensionId(id)) {
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("extension: id is '{}'; expected VENDOR.NAME/REVISION, such as 'acme.rma/1'",
                             Printable(id == nullptr ? "" : id))};
  }
  if (std::string_view(id).starts_with("dtrun.")) {  // a program could not call their members
    return Error{DTRUN_NOT_FOUND, fmt::format("extension: '{}' is between dtrun and its plugins", id)};
  }
  ExtensionSearch search(making, id);
  dtrun_extension found;
  for (const Route* route : routes) {
    if (route == nullptr) continue;
    if (search.Find({route->carrier.extensions, route->carrier.instance, route->comm}, found)) return found;
  }
  return search.NotFound();
}

}  // namespace dtrun::comm

#include "stack.h"

#include <exception>
#include <memory>
#include <set>
#include <string>

#include "dtrun/plugin/failure.hpp"
#include "fill_error.h"
#include "host.h"
#include "load.h"

namespace dtrun::conformance {
namespace {

// What `open` returns is its first member.
struct Opened {
  dtrun_wrapped shown{};
  const dtrun_plugin* plugin = nullptr;
  dtrun_plugin table{};
  dtrun_backend backend{};
  std::unique_ptr<dtrun_options> options;
};

constexpr int kMostDepth = 8;
thread_local int depth = 0;
thread_local std::string wrong;
thread_local std::set<std::string> opened_names;

dtrun_status FillWrong(dtrun_error* err, dtrun_status status, const std::string& text) {
  wrong = text;
  return FillError(err, status, text);
}

struct Deeper {
  Deeper() { ++depth; }
  ~Deeper() { --depth; }
};

dtrun_status OpenFile(const std::string& file, const dtrun_options& above, const dtrun_wrapped** out,
                      dtrun_error* err) {
  const FileName of_file = NameOfFile(file);
  if (of_file.kind != DTRUN_KIND_BACKEND)
    return FillWrong(err, DTRUN_INVALID_ARGUMENT,
                     "'" + file + "' is no file of a backend; give the path of a libdtrun_backend_NAME.so");
  const Deeper deeper;
  if (depth > kMostDepth)
    return FillWrong(err, DTRUN_INVALID_ARGUMENT, "'" + file + "' stands on itself; name another backend");
  auto opened = std::make_unique<Opened>();
  opened->plugin = LoadPlugin(file, DTRUN_KIND_BACKEND);
  opened->table = sdk::internal::ReadStruct(opened->plugin);
  opened->backend = sdk::internal::ReadStruct(opened->plugin->backend);
  opened->table.backend = &opened->backend;
  opened->table.init = nullptr;
  opened->table.shutdown = nullptr;
  std::map<std::string, std::string> values = above.of_others;
  const std::string prefix = of_file.name + ".";
  for (const auto& [key, value] : above.of_others) {
    if (key.rfind(prefix, 0) == 0) values[key.substr(prefix.size())] = value;
  }
  opened->options = MakeOptions(*opened->plugin, values);
  opened->shown.struct_size = sizeof opened->shown;
  opened->shown.plugin = &opened->table;
  const dtrun_status status = sdk::InitPlugin(*opened->plugin, Host(DTRUN_KIND_BACKEND),
                                              opened->options.get(), &opened->shown.instance, err);
  if (status != DTRUN_OK) return status;
  opened_names.insert(of_file.name);
  *out = &opened.release()->shown;
  return status;
}

dtrun_status Open(const dtrun_host*, const dtrun_options* options, const char* key, const dtrun_wrapped** out,
                  dtrun_error* err) {
  if (depth == 0) wrong.clear();
  try {
    if (options == nullptr || key == nullptr)
      return FillError(err, DTRUN_INVALID_ARGUMENT, "the options or the key are a null pointer");
    const auto found = options->entries.find(key);
    if (found == options->entries.end() || (found->second.option.flags & DTRUN_OPTION_BACKEND) == 0)
      return FillError(err, DTRUN_INVALID_ARGUMENT,
                       std::string("the plugin has no option '") + key + "' with DTRUN_OPTION_BACKEND");
    if (!found->second.set)
      return FillError(err, DTRUN_NOT_FOUND,
                       std::string("option '") + key + "' is unset, and names no backend");
    return OpenFile(found->second.text, *options, out, err);
  } catch (const std::exception& problem) {
    return FillWrong(err, DTRUN_FAILED_PRECONDITION, std::string("option '") + key + "': " + problem.what());
  }
}

void Close(const dtrun_host*, const dtrun_wrapped* wrapped) {
  if (wrapped == nullptr) return;
  const std::unique_ptr<const Opened> opened(reinterpret_cast<const Opened*>(wrapped));
  opened->plugin->shutdown(wrapped->instance);
}

}  // namespace

const std::string& WrongBelow() { return wrong; }

bool HasOpened(const std::string& name) { return opened_names.count(name) != 0; }

const dtrun_plugins_service* PluginsService() {
  static constexpr dtrun_plugins_service kService{sizeof(dtrun_plugins_service), 0, &Open, &Close};
  return &kService;
}

}  // namespace dtrun::conformance

#include "core/comm/plugin_start.h"

#include <fmt/format.h>

#include "core/base/plugin_error.h"
#include "core/plugin/search_path.h"

namespace dtrun::comm {

Result<StartedPlugin> StartPlugin(plugin::Kind kind, const PluginSetting& setting, const char* options_name,
                                  dtrun_options& options, Nanoseconds limit, const PluginReport& report) {
  const std::string who = fmt::format("{} '{}'", plugin::KindText(kind), setting.name);
  // The file found for the job, by its real path; the name may have been that of a link to it.
  plugin::File file;
  file.kind = kind;
  file.name = plugin::FileForm(setting.name);
  file.path = setting.path;
  file.origin = "its path";
  file.id = setting.file_id;
  StartedPlugin started;
  {
    PluginCall entry(who + ", being loaded", limit, report);
    Result<const plugin::Plugin*> loaded = plugin::Load(file);
    if (!loaded) return std::move(loaded).error();
    started.plugin = *loaded;
  }
  if (!setting.options.empty()) {
    Result<dtrun_options> read = options::FromJson(setting.options);
    if (!read) return Error{read.error().code, fmt::format("{}: {}", options_name, read.error().text)};
    options = *std::move(read);
  }
  PluginError error;
  const PluginCall call(who + ", in its init", limit, report);
  const dtrun_status status =
      started.plugin->table().init(&started.plugin->host(), &options, &started.instance, &error);
  if (status == DTRUN_OK) return started;
  return Explained(status, error, fmt::format("starting {}", who));
}

}  // namespace dtrun::comm

// The plugin search path, independent of the environment that determines it.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/plugin.h"

namespace dtrun::plugin {

struct SearchInputs {
  std::vector<std::string> plugin_dirs{};     // --plugin-dir
  std::string environment{};                  // DTRUN_PLUGIN_PATH
  std::vector<std::string> config_folders{};  // plugins.path
  std::vector<std::filesystem::path> installed{};
  std::filesystem::path compiled_in{};
  bool secure = false;  // AT_SECURE: ignore environment and config
};

std::vector<Folder> OrderFolders(const SearchInputs& inputs);

// A sentence for each missing folder that DTRUN_PLUGIN_PATH names. The variable is often shared between
// machines, so this is no error.
std::vector<std::string> MissingFolders(const std::vector<Folder>& folders);

// Plugin folders that belong to the object (program or library) containing this code.
std::vector<std::filesystem::path> InstalledFolders();

// Kind and name of "libdtrun_<kind>_<name>.so"; nullopt for any other file name.
std::optional<std::pair<Kind, std::string>> ParseFileName(std::string_view file_name);

// The name in a file name: '-' becomes '_'.
std::string FileForm(std::string_view name);
// The name as users type it: "per-process". Both forms are accepted.
std::string TypedForm(std::string_view name);

// [a-z][a-z0-9_-]{0,31}
bool IsName(std::string_view text);
// An error for any other text, with a similar name or the next step, `otherwise`.
Status CheckName(const std::string& text, std::string_view otherwise);

}  // namespace dtrun::plugin

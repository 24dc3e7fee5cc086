// Where plugins are looked for, apart from the environment that decides it.
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
  bool secure = false;  // AT_SECURE: environment and config do not count
};

std::vector<Folder> OrderFolders(const SearchInputs& inputs);

// Of those, a sentence for each that DTRUN_PLUGIN_PATH names and that is not there. The variable is often
// shared between machines, so it is no error.
std::vector<std::string> MissingFolders(const std::vector<Folder>& folders);

// Folders of plugins that belong to the object (program or library) that holds this code.
std::vector<std::filesystem::path> InstalledFolders();

// Kind and name of "libdtrun_<kind>_<name>.so"; nullopt for any other file name.
std::optional<std::pair<Kind, std::string>> ParseFileName(std::string_view file_name);

// The name as it is written in a file name: '-' becomes '_'.
std::string FileForm(std::string_view name);
// As people type it: "per-process". Both forms are accepted.
std::string TypedForm(std::string_view name);

// [a-z][a-z0-9_-]{0,31}
bool IsName(std::string_view text);

}  // namespace dtrun::plugin

// The verbs of `dtrun plugins`, and what they share. Main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.h"
#include "core/plugin/plugin.h"
#include "tools/dtrun/job_flags.h"

namespace dtrun::cli {

int ListPlugins(const ConfigArguments& arguments, bool json, bool names_only);
int DescribePlugin(const ConfigArguments& arguments, const std::string& name, const std::string& kind,
                   bool json);
// The file that `word` means: itself, or where there is no such file, that of the installed plugin of this
// name.
std::string PluginFileOf(const std::string& word, const std::vector<std::string>& plugin_dirs);
// 1 if a file is refused or breaks a rule.
int CheckPlugins(const ConfigArguments& arguments, const std::vector<std::string>& files, bool json);

// `new` and `verify` use the installed SDK: its examples as templates, and its program dtrun-conformance.

struct NewPluginArguments {
  std::string name;
  std::string language = "c++";  // "c", "c++" or "rust"
  bool launcher = false;         // else a backend
  std::string output;            // the folder to make; empty: the name, in the current folder
};

// Writes a plugin that builds and passes dtrun-conformance. The exit code.
int NewPlugin(const NewPluginArguments& arguments);

// Becomes dtrun-conformance, for a file or the name of one that is installed or in `plugin_dirs`, with these
// arguments. Returns the exit code 2 if it cannot.
int VerifyPlugin(const std::string& word, const std::vector<std::string>& plugin_dirs,
                 const std::vector<std::string>& arguments);

// As in launcher.name: launchers are named with hyphens, their files with underscores.
std::string ShownName(const plugin::File& file);

// Values of backend.name that are not plugins; empty: it is a plugin.
std::string_view WithoutPlugin(std::string_view name);

// What the plugin found on this host with default options: a backend's library, a device plugin's devices.
Result<plugin::LaunchInfo> FoundHere(const ConfigArguments& arguments, const plugin::File& file,
                                     plugin::Probe& probe);

// Kind, names and versions of a plugin, as `describe --json` and `check --json` have them.
Json IdentityOf(const plugin::File& file, const plugin::Description& description);

}  // namespace dtrun::cli

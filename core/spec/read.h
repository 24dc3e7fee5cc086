// Reads the config of a job, once: defaults, the TOML file, DTRUN_CONFIG_* variables and --set, in rising
// precedence.
//
// Read checks the values against core's rows and those of the chosen plugins, and reports all problems of a
// file at once. Main thread.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/spec/job_spec.h"

namespace dtrun::hosts {
class Launchers;
}

namespace dtrun::spec {

// One problem of the config. Rendered as one line:
//   dtrun: train.toml:14:3: unknown option 'backend.nam'; did you mean 'name' (string or list of strings,
//   default "gloo")? see: dtrun config explain backend.name
struct Problem {
  std::string place;    // "train.toml:14:3", "--set x=1", ...; may be empty
  std::string message;  // one line
  std::string hint;     // one line or empty
};
std::string Render(const std::vector<Problem>& problems);

// A value given in another notation than dtrun's, such as "--nproc-per-node 2" of `dtrun torchrun`.
// Problems and `config explain` show the origin, which is the text that was typed.
struct Given {
  std::string key;
  // A single value in the notation of the option's type, or the items of a list.
  std::variant<std::string, std::vector<std::string>> value;
  options::Origin origin;
};

// Reads the options of one more plugin from the config that was read: a launcher that is asked for hosts, or
// a backend that joins those of backend.name.
struct PluginRead {
  PluginOptions options;
  std::vector<Problem> problems;
};
using OptionsReader = std::function<PluginRead(const std::string& kind, const std::string& name,
                                               const options::Schema& schema)>;

struct Request {
  std::filesystem::path file;  // empty: no file, only defaults and overrides
  // In overrides, relative paths start at the current folder, as in shell completion; in the file
  // they start at the file's folder.
  std::vector<std::string> sets;  // "key=value" of --set, in order
  // Maps a --set word to the flag that the user typed: "--set network.interface=eth0" to
  // "--network-interface", "--ranks 4" to "-np". Problems and origins show the flag.
  std::map<std::string, std::string> spelled;
  std::map<std::string, std::string> environment;  // the whole environment; DTRUN_CONFIG_* are read
  std::vector<std::string> command;                // from the command line; replaces job.command if not empty
  std::vector<Given> base;                         // above the defaults, below the file
  std::vector<Given> given;           // above --set, which may not give a flag's option another value
  bool elsewhere = false;             // a platform without its variables is no problem: the job has no hosts
  std::vector<std::string> backends;  // existing backends; tables [backend.NAME] may name them
  std::vector<std::string> launcher_names;  // existing launchers, for tables [launcher.NAME]
  std::vector<std::string> devices;         // existing device plugins; backend.name may give their kinds
  // Whether there is such a plugin under plugins.path as read so far, beside those of the lists. Empty: there
  // is none.
  std::function<bool(std::string_view kind, const std::string& name, const JobSpec& so_far)> exists;
  // Returns the launcher plugins that find hosts or connect to them, under plugins.path as read so far.
  // Called if cluster.from or cluster.connect may name one. `options` stays usable. Empty: there are none.
  std::function<std::shared_ptr<hosts::Launchers>(const JobSpec& so_far, const OptionsReader& options)>
      launchers;
};

// Returns the rows of a plugin, with full keys. Called once for the launcher, then once for each name in
// backend.name but "none"; last for each other plugin that the config has options for, to check these. An
// error about a named plugin becomes a Problem at its .path or .name, and its options are not checked, as if
// the function were empty.
using PluginSchema = std::function<Result<options::Schema>(std::string_view kind, const std::string& name,
                                                           const JobSpec& so_far)>;

struct Loaded {
  JobSpec spec;                   // usable only if problems is empty
  std::vector<Problem> problems;  // sorted by place
  OptionsReader more;
};
Loaded Load(Request request, const PluginSchema& plugin_schema);

// The output of `dtrun config explain KEY`: value, origin, type, default, doc, reader; for a table,
// its options. An error names the nearest key.
Result<std::string> Explain(const JobSpec& spec, std::string_view key);

}  // namespace dtrun::spec

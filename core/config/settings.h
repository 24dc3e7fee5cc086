// The validated config: every value with its origin.
//
// Load reads defaults, the TOML file, DTRUN_CONFIG_* variables and --set overrides, in rising
// precedence. It checks them against core's schema and the schemas of the chosen plugins, and
// reports all problems of a file at once. Settings is immutable afterwards; any thread may read it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/options/snapshot.h"
#include "core/options/value.h"

namespace dtrun::hosts {
class Launchers;
}

namespace dtrun::config {

// The platform that named the hosts of the job; all empty: none.
struct HostsFrom {
  std::string platform;
  std::string sharing;  // how it passes a variable to all hosts; empty: not needed or unknown
  std::string here;     // its name for this host, if it has one
};

// One problem of the config. Rendered as one line:
//   dtrun: train.toml:14:3: unknown option 'backend.nam'; did you mean 'name' (string or list of strings,
//   default "gloo")? see: dtrun config explain backend.name
struct Problem {
  std::string place;    // "train.toml:14:3", "--set x=1", ...; may be empty
  std::string message;  // one line
  std::string hint;     // one line or empty
};
std::string Render(const std::vector<Problem>& problems);

class Settings {
 public:
  // Typed access to a value that Load has validated. REQUIRES: the key is in the schema, has that
  // type, and is set (see Has); a violation ends the process. A count is an Int or a Text; check
  // Get(key).data.
  bool Has(std::string_view key) const;
  bool Bool(std::string_view key) const;
  std::int64_t Int(std::string_view key) const;
  std::chrono::nanoseconds Duration(std::string_view key) const;
  const std::string& Text(std::string_view key) const;  // string, enum, path
  const std::vector<std::string>& List(std::string_view key) const;
  const std::map<std::string, std::string>& Map(std::string_view key) const;

  const options::Value& Get(std::string_view key) const;
  // The place of the entry `name` in a table of strings; the place of the table if the entry's is unknown.
  const std::string& PlaceOf(const std::string& key, const std::string& name) const;
  // Every option known for this config, core's first.
  const options::Schema& schema() const { return schema_; }
  const options::Spec* Find(std::string_view key) const;  // null: no such option

  // Values under `prefix` ("backend.options.") in the form that a plugin sees.
  dtrun_options SnapshotOf(std::string_view prefix) const;

  const HostsFrom& hosts_from() const { return hosts_from_; }
  const std::vector<std::string>& devices() const { return devices_; }  // from the request

  const std::filesystem::path& file() const { return file_; }      // as given; empty: none
  const std::filesystem::path& folder() const { return folder_; }  // absolute; the file's folder, else cwd

 private:
  friend class Loader;
  options::Schema schema_;
  std::map<std::string, options::Value, std::less<>> values_;
  HostsFrom hosts_from_;
  std::vector<std::string> devices_;
  std::map<std::string, std::string> entry_places_;  // "job.env.A": its place in the file
  std::filesystem::path file_;
  std::filesystem::path folder_;
};

// A value given in another notation than dtrun's, such as "--nproc-per-node 2" of `dtrun torchrun`.
// Problems and `config explain` show the origin, which is the text that was typed.
struct Given {
  std::string key;
  // A single value in the notation of the option's type, or the items of a list.
  std::variant<std::string, std::vector<std::string>> value;
  options::Origin origin;
};

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
  std::vector<Given> given;                        // above --set
  bool elsewhere = false;             // a platform without its variables is no problem: the job has no hosts
  std::string backend;                // the backend in backend.name to read options for; empty: the first
  std::string launcher;               // read only this launcher's options; launcher.name need not name it
  std::vector<std::string> backends;  // existing backends; skips [backend.NAME] of unused ones
  std::vector<std::string> launcher_names;  // existing launchers, for tables [launcher.NAME]
  std::vector<std::string> devices;         // existing device plugins; backend.name may give their kinds
  // Returns the launcher plugins that find hosts or connect to them, under plugins.path as read so far.
  // Called if cluster.from or cluster.connect may name one. Empty: there are none.
  std::function<std::shared_ptr<hosts::Launchers>(const class Settings& so_far)> launchers;
};

// The names in backend.name in order of preference, with "auto" expanded. core/config/backend_choice.h
// defines what several names mean.
std::vector<std::string> BackendNames(const Settings& settings);

// Returns the schema of plugin `name` (`kind` is "backend" or "launcher"), with full keys. Called
// once per kind, when the name is known; not for the backend "none". An error becomes a Problem at
// backend.path or backend.name. After an error, or if the function is empty, the plugin's options
// are not checked.
using PluginSchema = std::function<Result<options::Schema>(std::string_view kind, const std::string& name,
                                                           const class Settings& so_far)>;

struct Loaded {
  Settings settings;              // usable only if problems is empty
  std::vector<Problem> problems;  // sorted by place
};
Loaded Load(const Request& request, const PluginSchema& plugin_schema);

// Core's own options.
const options::Schema& CoreSchema();

// "DTRUN_CONFIG_BACKEND_NAME" for "backend.name".
std::string EnvironmentName(std::string_view key);

// The output of `dtrun config explain KEY`: value, origin, type, default, doc, reader; for a table,
// its options. An error names the nearest key.
Result<std::string> Explain(const Settings& settings, std::string_view key);

}  // namespace dtrun::config

// The config: what the user asked for, every value with its origin.
//
// Load reads defaults, the TOML file, DTRUN_CONFIG_* variables and --set overrides, in
// rising precedence, checks them against core's schema and the schemas of the chosen
// plugins, and reports all problems of a file at once. Settings is an immutable value
// afterwards; any thread may read it.
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

// The platform that named the hosts of the job; all empty: none did.
struct HostsFrom {
  std::string platform;
  std::string sharing;  // how it gives a variable to all hosts; empty: it need not, or nobody knows
  std::string here;     // its name for this host, where it says that
};

// One thing wrong with the config. Rendered as one line:
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
  // Typed access to a value that Load has validated. REQUIRES: the key is in the schema,
  // has that type, and is set (see Has); a breach ends the process. A count is an Int or
  // a Text, as Get(key).data tells.
  bool Has(std::string_view key) const;
  bool Bool(std::string_view key) const;
  std::int64_t Int(std::string_view key) const;
  std::chrono::nanoseconds Duration(std::string_view key) const;
  const std::string& Text(std::string_view key) const;  // string, enum, path
  const std::vector<std::string>& List(std::string_view key) const;
  const std::map<std::string, std::string>& Map(std::string_view key) const;

  const options::Value& Get(std::string_view key) const;
  // Where `name` of a table of strings was given: the place of the table where no better one is known.
  const std::string& PlaceOf(const std::string& key, const std::string& name) const;
  // Every option known for this config, core's first.
  const options::Schema& schema() const { return schema_; }
  const options::Spec* Find(std::string_view key) const;  // null: no such option

  // Values under `prefix` ("backend.options.") as a plugin sees them.
  dtrun_options SnapshotOf(std::string_view prefix) const;

  const HostsFrom& hosts_from() const { return hosts_from_; }
  const std::vector<std::string>& devices() const { return devices_; }  // as in the request

  const std::filesystem::path& file() const { return file_; }      // as given; empty: none
  const std::filesystem::path& folder() const { return folder_; }  // absolute; of the file, else cwd

 private:
  friend class Loader;
  options::Schema schema_;
  std::map<std::string, options::Value, std::less<>> values_;
  HostsFrom hosts_from_;
  std::vector<std::string> devices_;
  std::map<std::string, std::string> entry_places_;  // "job.env.A": where the file gives it
  std::filesystem::path file_;
  std::filesystem::path folder_;
};

// A value that was given in another spelling than ours, such as "--nproc-per-node 2" of
// `dtrun torchrun`. Problems and `config explain` name the origin, which is what was typed.
struct Given {
  std::string key;
  // In the spelling of the option's type, taken as it is; or the items of a list.
  std::variant<std::string, std::vector<std::string>> value;
  options::Origin origin;
};

struct Request {
  std::filesystem::path file;  // empty: no file, defaults and overrides only
  // In overrides, as in all that a shell completes, relative paths start at the current folder;
  // in the file they start at the file's folder.
  std::vector<std::string> sets;  // "key=value" of --set, in order
  // Flags that were typed for words with a value: "--set network.interface=eth0" to "--network-interface",
  // "--ranks 4" to "-np". Problems and origins name those.
  std::map<std::string, std::string> spelled;
  std::map<std::string, std::string> environment;  // the whole environment; DTRUN_CONFIG_* are read
  std::vector<std::string> command;                // of the command line: replaces job.command when not empty
  std::vector<Given> base;                         // above the defaults, below the file
  std::vector<Given> given;                        // above --set
  bool elsewhere = false;  // a platform that has not set its variables is no problem: there are no hosts
  std::string backend;     // of several in backend.name, the one whose options are read; empty: the first
  std::string launcher;    // only the options of this launcher are read, which launcher.name need not name
  std::vector<std::string>
      backends;  // that exist: a table [backend.NAME] of one that is not asked for is passed by
  std::vector<std::string> launcher_names;  // that exist, for tables [launcher.NAME]
  std::vector<std::string> devices;  // the device plugins that exist, whose kinds backend.name may give
  // The launcher plugins that find hosts or connect to them, by what plugins.path says so far; asked for when
  // cluster.from or cluster.connect may name one. Empty: there are none.
  std::function<std::shared_ptr<hosts::Launchers>(const class Settings& so_far)> launchers;
};

// The names that backend.name gives, in order of preference; those of "auto" spelled out. What several mean
// says core/config/backend_choice.h.
std::vector<std::string> BackendNames(const Settings& settings);

// Schema of the plugin `name` ("backend" or "launcher" as kind), with full keys. Called
// once per kind, when the name is known; not for the backend "none". An error becomes a
// Problem at backend.path or backend.name, and then, as with an empty function, the
// plugin's options are not looked at.
using PluginSchema = std::function<Result<options::Schema>(std::string_view kind, const std::string& name,
                                                           const class Settings& so_far)>;

struct Loaded {
  Settings settings;              // usable only when problems is empty
  std::vector<Problem> problems;  // in order of place
};
Loaded Load(const Request& request, const PluginSchema& plugin_schema);

// Core's own options.
const options::Schema& CoreSchema();

// "DTRUN_CONFIG_BACKEND_NAME" for "backend.name".
std::string EnvironmentName(std::string_view key);

// What `dtrun config explain KEY` prints: value, origin, type, default, doc, reader; of a
// table the options in it; or an error with the nearest key.
Result<std::string> Explain(const Settings& settings, std::string_view key);

}  // namespace dtrun::config

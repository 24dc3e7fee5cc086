// Finds keys in a schema, and writes the hint for an unknown key. Pure functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/options/spec.h"

namespace dtrun::spec {

struct JobSpec;

// Null if there is no such option.
const options::Spec* FindSpec(const options::Schema& schema, std::string_view key);

// Whether `key` is a table that holds options: "job", "backend.options".
bool IsTable(const options::Schema& schema, std::string_view key);

// Names directly under `table` ("" is the top): options, then tables.
std::vector<std::string> NamesIn(const options::Schema& schema, const std::string& table);

// "backend" and "name" of "backend.name"; "" and "job" of "job".
std::string_view TableOf(std::string_view key);
std::string_view NameOf(std::string_view key);

// `(string, default "gloo")`.
std::string Summary(const options::Spec& spec);

// The full key of the option or table that the unknown `key` probably means, or empty. Names in the
// same table are tried first, then options of that name elsewhere.
std::string NearestKey(const options::Schema& schema, const std::string& key);

// The full key for `name`, which may be an option's short name or full key: "job.cwd" for "cwd". A short name
// must be unique or belong to [job]. '-' may replace '_'. Empty: there is none.
std::string KeyNamed(const options::Schema& schema, std::string name);

// The hint for an unknown `key`: the nearest key, else the names in its table. `whole` prints full
// keys. `plugin` is the plugin that the options belong to, or empty.
std::string UnknownHint(const options::Schema& schema, const std::string& key, bool whole,
                        const std::string& plugin);

// What the config file and the command line of this host set, by key and in TOML notation: hosts that were
// started by hand compare it. Without [cluster] and options that may differ
// between hosts.
std::map<std::string, std::string> OptionsGiven(const JobSpec& spec);

// The options of plugins that are not at their default: "backend.gloo.interface = "lo" (job.toml:4:1)".
std::vector<std::string> PluginOptionsSet(const JobSpec& spec);

}  // namespace dtrun::spec

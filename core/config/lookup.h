// Finding keys in a schema, and what to say about a key that is not there. Pure
// functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/options/spec.h"

namespace dtrun::config {

// Null when there is no such option.
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

// What was meant by the unknown `key`: the full key of an option or table, or empty.
// Neighbours in the same table come first, then options of that name elsewhere.
std::string NearestKey(const options::Schema& schema, const std::string& key);

// The full key of the option with the name `name`, or of the full key, where one alone has it or [job] does:
// "job.cwd" of "cwd"; empty: there is none. '-' stands for '_'.
std::string KeyNamed(const options::Schema& schema, std::string name);

// The hint for an unknown `key`: the nearest one, else the names beside it. `whole` prints
// full keys. `plugin` names the plugin whose options these are, or is empty.
std::string UnknownHint(const options::Schema& schema, const std::string& key, bool whole,
                        const std::string& plugin);

}  // namespace dtrun::config

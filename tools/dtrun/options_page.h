// Options for readers: the lines of `dtrun config list`, the page docs/options.md, JSON. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/config/settings.h"

namespace dtrun::cli {

// A line for each option whose key begins with `prefix`: key, value, what it is, and where the value came
// from when it is not the default. Empty when there is none.
std::string ListOptions(const config::Settings& settings, const std::string& prefix);

Json ToJson(const options::Spec& spec);
Json ToJson(const options::Spec& spec, const options::Value& value);  // and what it is set to, by whom

// One table of docs/options.md: those of core, or a plugin's.
struct OptionTable {
  std::string title;  // "job", "backend gloo"
  std::string note;   // a paragraph below it; may be empty
  options::Schema options;
};
std::string OptionsPage(const std::vector<OptionTable>& tables);

// dtrun.toml(5): the format of a config, and the same options, as roff.
std::string OptionsManPage(const std::vector<OptionTable>& tables, const std::string& version);

// Core's options, a table for each table of the config, in its order.
std::vector<OptionTable> CoreTables();

}  // namespace dtrun::cli

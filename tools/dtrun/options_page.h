// Formats options: the lines of `dtrun config list`, the page docs/options.md, JSON. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/spec/job_spec.h"

namespace dtrun::cli {

// A line for each option with the key prefix `prefix`: key, value, description, and the origin of a
// non-default value. Empty if there is none. `whole`: long values are not shortened; nor is that of a single
// option.
std::string ListOptions(const spec::JobSpec& spec, const std::string& prefix, bool whole);

// Lines for an option of a plugin: key, meaning, type, range and default.
std::string OptionText(const options::Spec& spec);

Json ToJson(const options::Spec& spec);
Json ToJson(const options::Spec& spec, const options::Value& value);  // with its value and origin

// One table of docs/options.md, for core or a plugin.
struct OptionTable {
  std::string title;  // "job", "backend gloo"
  std::string note;   // a paragraph below it; may be empty
  options::Schema options;
};
std::string OptionsPage(const std::vector<OptionTable>& tables);

// dtrun.toml(5): the config format and the same options, as roff.
std::string OptionsManPage(const std::vector<OptionTable>& tables, const std::string& version);

// Core's options, one table per config table, in config order.
std::vector<OptionTable> CoreTables();

}  // namespace dtrun::cli

// The host that the suite gives to a plugin: log to stderr, clock, health, options from
// the plugin's own defaults and the test's values. Keeps the rules of docs/abi.md that bind hosts,
// so that no dtrun is stricter. Constant once made; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dtrun/abi.h"
#include "kv.h"
#include "option_value.h"

// The ABI's opaque options, as this host defines them.
struct dtrun_options {
  struct Entry {
    dtrun_option option{};
    bool set = false;
    bool given = false;  // else it is the default
    std::string text;
    dtrun::conformance::OptionValue value;
    std::vector<dtrun_string> items;  // of value.items
  };
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> of_others;  // "gloo.interface": of a plugin that this one opens
};

namespace dtrun::conformance {

// For a plugin of this kind.
const dtrun_host* Host(std::int32_t kind = DTRUN_KIND_BACKEND);

// The plugin's defaults, which a launcher has that is asked for hosts or commands. Throws
// std::invalid_argument on a default that is no value.
std::unique_ptr<dtrun_options> DefaultOptions(const dtrun_plugin& plugin);

// Values are written as options.h says; items of a list are separated by commas, a path is relative to the
// working folder. A key NAME.KEY is one of a plugin that this one opens. Throws std::invalid_argument on a
// key that the table lacks, a value that is none, or a required option without one.
std::unique_ptr<dtrun_options> MakeOptions(const dtrun_plugin& plugin,
                                           const std::map<std::string, std::string>& values);

// Which required option has no value, as a text; "" when each has one.
std::string MissingOption(const dtrun_plugin& plugin, const std::map<std::string, std::string>& values);

// How much plugins have logged.
std::uint64_t LoggedBytes();

// Peers that plugins reported as failed since the last call: rank and text.
std::vector<std::pair<int, std::string>> TakePeerReports();

}  // namespace dtrun::conformance

// The host that the suite gives to a plugin: log to stderr, clock, health, options from
// the plugin's own defaults and the test's values. Constant once made; any thread.
#pragma once

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
    std::string text;
    dtrun::conformance::OptionValue value;
    std::vector<dtrun_string> items;  // of value.items
  };
  std::map<std::string, Entry> entries;
};

namespace dtrun::conformance {

// For a plugin of this kind.
const dtrun_host* Host(std::int32_t kind = DTRUN_KIND_BACKEND);

// Values are written as options.h says; items of a list are separated by commas. Throws std::invalid_argument
// on a key that the table lacks, or a value that is none.
std::unique_ptr<dtrun_options> MakeOptions(const dtrun_plugin& plugin,
                                           const std::map<std::string, std::string>& values);

// Peers that plugins reported as failed since the last call: rank and text.
std::vector<std::pair<int, std::string>> TakePeerReports();

}  // namespace dtrun::conformance

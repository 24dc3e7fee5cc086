// Values of options, from the spelling of their type (options.h). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtrun/abi/options.h"

namespace dtrun::conformance {

struct OptionValue {
  std::int64_t integer = 0;        // bool, int, uint, bytes, duration (ns), enum (index)
  double number = 0;               // float
  std::vector<std::string> items;  // list
};

// Throws std::invalid_argument, which says what the text must be, on one that is no value of the option or
// out of its bounds.
OptionValue ReadOption(const dtrun_option& option, const std::string& text);

// A full-size copy of option `index` of a plugin's table.
dtrun_option OptionAt(const dtrun_option* options, std::uint64_t index);

}  // namespace dtrun::conformance

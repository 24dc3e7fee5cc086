// Opens a plugin's file as dtrun does, and calls its entry.
//
// A file is never unloaded. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "dtrun/abi.h"
#include "dtrun/abi/device.h"
#include "dtrun/plugin/failure.hpp"

namespace dtrun::conformance {

// The entry of the file; throws std::runtime_error with the reason when there is none.
dtrun_plugin_entry OpenPlugin(const std::string& file);

// The table of the file; throws std::runtime_error when the entry fails or the table is of another kind.
const dtrun_plugin* LoadPlugin(const std::string& file, std::int32_t kind);

// What "libdtrun_<kind>_<name>.so" says. `kind` is 0 when the file is named otherwise.
struct FileName {
  std::int32_t kind = 0;
  std::string name;
};
FileName NameOfFile(const std::string& file);

}  // namespace dtrun::conformance

// The current environment of another process: /proc shows only the one that it was started with, not later
// changes.
//
// Reads it from the process's memory, through the symbol that getenv uses; any thread that may block.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/stacks/memory.h"

namespace dtrun::stacks {

// The ones of `names` that are set, values truncated to 256 bytes. Empty if its memory cannot be read, and
// for a program that links the C library statically. `maps`: text of /proc/PID/maps.
std::map<std::string, std::string> EnvironmentNow(const Memory& memory, const std::string& maps,
                                                  const std::vector<std::string>& names);

}  // namespace dtrun::stacks

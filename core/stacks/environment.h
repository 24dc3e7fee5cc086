// The environment of another process as it is now: /proc has the one that it was started with, whatever the
// program has set since.
//
// Read from its memory by way of the symbol that getenv uses; any thread, where waiting is allowed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/stacks/memory.h"

namespace dtrun::stacks {

// Of these variables those that it has, values cut to 256 bytes. Empty where its memory cannot be read, and
// for a program that links the C library statically. `maps`: what /proc/PID/maps says.
std::map<std::string, std::string> EnvironmentNow(const Memory& memory, const std::string& maps,
                                                  const std::vector<std::string>& names);

}  // namespace dtrun::stacks

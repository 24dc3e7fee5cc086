// Whether a host has the Python modules that a job needs.
#pragma once

#include <string>
#include <vector>

#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// Starts the interpreter, which looks for the modules without importing them, but for the packages that hold
// them. The current folder of the ranks counts, but no file of it runs: an interpreter in it, or in a
// relative folder of PATH, is not asked. A name GROUP:NAME is an entry point
// of an installed package, and PACKAGE>=MAJOR.MINOR a package that is newer, or not installed. What is
// missing, and for whom: "'/usr/bin/python3' has no module 'torch'"; modules before entry points, and those
// before versions; empty: nothing is. `environment`: "NAME=value", before the request's variables; empty:
// this process's own.
std::string MissingModules(const ModuleRequest& request, const std::vector<std::string>& environment);

}  // namespace dtrun::preflight

// Checks whether a host has the Python modules that a job needs.
#pragma once

#include <string>
#include <vector>

#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// Starts the interpreter, which searches for the modules without importing them, except for the packages that
// contain them. It searches the ranks' current folder, but runs no file of it: an interpreter in that folder,
// or in a relative folder of PATH, is not started. A name GROUP:NAME is an entry point of an installed
// package. PACKAGE>=MAJOR.MINOR is a package that is at least as new, or not installed. Returns what is
// missing and where: "'/usr/bin/python3' has no module 'torch'"; modules before entry points, and those
// before versions; empty: nothing is missing. `environment`: "NAME=value", overridden by the request's
// variables; empty: this process's own.
std::string MissingModules(const ModuleRequest& request, const std::vector<std::string>& environment);

}  // namespace dtrun::preflight

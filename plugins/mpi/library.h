// Finds and opens libmpi, and refuses files that are not libmpi or belong to another MPI.
//
// A process has one MPI at most: an image that the program has already is used, whatever
// the plugin would have opened. Called from `init`; any thread.
#pragma once

#include <optional>
#include <string>

#include "api.h"

namespace dtrun::mpi_plugin {

struct Library {
  Api api;
  std::string path;     // of the file
  std::string version;  // first line of what it says of itself: "Open MPI v4.1.4, ..."
};

// `wanted`: a path or a name for the dynamic linker; nullopt: the library whose headers this
// plugin was compiled with. Opened once and kept; a later call that wants another file throws.
const Library& OpenLibrary(const std::optional<std::string>& wanted);

// "Open MPI v4.1.4" of "Open MPI v4.1.4, package: ...".
std::string ShortVersion(const std::string& version);

}  // namespace dtrun::mpi_plugin

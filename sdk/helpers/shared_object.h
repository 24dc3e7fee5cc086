// What a shared object says of itself, read from its file: for dtrun's checks of a plugin and for the
// conformance suite. Nothing is loaded. Values; any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::helpers {

struct SharedObject {
  std::vector<std::string> exported;  // symbols that it defines and shows
  std::vector<std::string> unique;    // those of them that exist once in a process, in any object
  std::vector<std::string> needed;    // libraries that it links
  bool nodelete = false;              // stays when it is closed
};

// Throws std::runtime_error on a file that is no 64-bit ELF object of this machine's byte order.
SharedObject ReadSharedObject(const std::string& file);

// The symbols that a plugin must hide: all that it exports but its entries, dtrun_plugin_entry_v<major>.
std::vector<std::string> ForeignSymbols(const SharedObject& plugin);

// How a plugin breaks rule V2, beyond a missing entry: a clause for each, with the next step.
std::vector<std::string> Unfit(const SharedObject& plugin);

}  // namespace dtrun::helpers

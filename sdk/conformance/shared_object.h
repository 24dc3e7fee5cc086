// What a shared object says of itself, read from its file. Values; any thread.
#pragma once

#include <string>
#include <vector>

namespace dtrun::conformance {

struct SharedObject {
  std::vector<std::string> exported;  // symbols that it defines and shows
  std::vector<std::string> unique;    // those of them that exist once in a process, in any object
  std::vector<std::string> needed;    // libraries that it links
  bool nodelete = false;              // stays when it is closed
};

// Throws std::runtime_error on a file that is no 64-bit ELF object of this machine's byte order.
SharedObject ReadSharedObject(const std::string& file);

}  // namespace dtrun::conformance

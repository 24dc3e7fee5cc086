// Reading files in /proc. Any thread.
#pragma once

#include <string>

namespace dtrun {

// The content, as far as it could be read before its process ended; empty when there is none. Streams throw
// when a process ends between open and read.
std::string ReadProcFile(const std::string& path);

}  // namespace dtrun

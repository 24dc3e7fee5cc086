// Writes the last output of a process that must exit even if its reader is stuck.
//
// Any thread. REQUIRES: SIGPIPE is ignored or blocked.
#pragma once

#include <chrono>
#include <string_view>

namespace dtrun::output {

// Writes to a terminal, pipe, socket or file. False if the reader is gone or did not take everything within
// `limit`.
bool WriteWithin(int fd, std::string_view text, std::chrono::milliseconds limit = std::chrono::seconds(2));

}  // namespace dtrun::output

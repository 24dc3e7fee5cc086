// Writes what is said last, by a process that must end although nobody reads it.
//
// For any thread. REQUIRES: SIGPIPE is ignored or blocked.
#pragma once

#include <chrono>
#include <string_view>

namespace dtrun::output {

// To a terminal, a pipe, a socket or a file. False when the reader has gone, or has not taken all within
// `limit`.
bool WriteWithin(int fd, std::string_view text, std::chrono::milliseconds limit = std::chrono::seconds(2));

}  // namespace dtrun::output

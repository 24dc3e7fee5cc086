// Complete writes: to dtrun's own files, logs and the console's overflow file, and of last words. Any thread.
//
// WriteAll and WriteAllAt return 0 or an errno value and retry interrupted or short writes.
// Exceeding the file-size limit returns EFBIG instead of raising SIGXFSZ.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string_view>

namespace dtrun::output {

int WriteAll(int fd, std::string_view bytes);
int WriteAllAt(int fd, std::string_view bytes, off_t offset);

// The last output of a process that must exit even if its reader is stuck.
// REQUIRES: SIGPIPE is ignored or blocked. Writes to a terminal, pipe, socket or file. False if the reader is
// gone or did not take everything within `limit`.
bool WriteWithin(int fd, std::string_view text, std::chrono::milliseconds limit = std::chrono::seconds(2));

}  // namespace dtrun::output

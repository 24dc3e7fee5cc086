// Complete writes to dtrun's own files: logs and the console's overflow file.
//
// Pure functions; any thread. They return 0 or an errno value and retry interrupted or short writes.
// Exceeding the file-size limit returns EFBIG instead of raising SIGXFSZ.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dtrun::output {

int WriteAll(int fd, std::string_view bytes);
int WriteAllAt(int fd, std::string_view bytes, off_t offset);

}  // namespace dtrun::output

// Whole writes to files of ours: logs and the overflow of the console.
//
// Pure functions; any thread. They return 0 or an errno value, retry what was interrupted or
// short, and turn the file-size limit into EFBIG instead of the death by SIGXFSZ.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dtrun::output {

int WriteAll(int fd, std::string_view bytes);
int WriteAllAt(int fd, std::string_view bytes, off_t offset);

}  // namespace dtrun::output

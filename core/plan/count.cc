#include <sched.h>

#include <cctype>
#include <filesystem>
#include <string>

#include "core/plan/hosts.h"

namespace dtrun::plan {

// /dev/nvidia0, /dev/nvidia1, ...
int CountGpus() {
  int count = 0;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("nvidia") && name.size() > 6 && std::isdigit(static_cast<unsigned char>(name[6])))
      ++count;
  }
  return count;
}

int UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

}  // namespace dtrun::plan

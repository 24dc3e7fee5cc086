#include "process.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace dtrun::ucx_plugin {
namespace {

// Clock ticks from boot to the process's start; "" when there is no such process. Field 22 of
// proc(5)'s stat, counted from behind the name, which may hold anything.
std::string StartOf(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  return field;
}

std::string Namespace() {
  char text[64];
  const ssize_t size = readlink("/proc/self/ns/pid", text, sizeof text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

std::string Boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace

std::string ProcessIdentity() {
  return Boot() + " " + Namespace() + " " + std::to_string(getpid()) + " " + StartOf("self");
}

int WatchProcess(const std::string& identity) {
  std::istringstream fields(identity);
  std::string boot;
  std::string space;
  pid_t process = -1;
  std::string start;
  fields >> boot >> space >> process >> start;
  if (!fields || boot != Boot() || space != Namespace() || process == getpid()) return -1;
  const auto watch = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  // Gone already, or its number now belongs to another: a descriptor that is readable at once.
  if ((watch < 0 && errno == ESRCH) || (watch >= 0 && StartOf(std::to_string(process)) != start)) {
    if (watch >= 0) close(watch);
    return eventfd(1, EFD_CLOEXEC);
  }
  return watch;
}

}  // namespace dtrun::ucx_plugin

#include "tools/bench/program/host.h"

#include <sched.h>
#include <sys/utsname.h>

#include <cstdlib>
#include <fstream>

#include "core/base/text.h"

namespace dtrun::bench {
namespace {

// The text after "NAME :" in a file of /proc.
std::string Entry(const char* file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.rfind(name, 0) != 0 || colon == line.npos) continue;
    return std::string(Trim(std::string_view(line).substr(colon + 1)));
  }
  return "";
}

}  // namespace

Host ThisHost() {
  Host host;
  utsname system{};
  if (::uname(&system) == 0) {
    host.name = system.nodename;
    host.kernel = system.release;
  }
  host.processor = Entry("/proc/cpuinfo", "model name");
  if (host.processor.empty()) host.processor = system.machine;
  cpu_set_t mine;
  host.cores = ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
  if (double loads[1]; ::getloadavg(loads, 1) == 1) host.load = loads[0];
  host.available_bytes = std::strtoull(Entry("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) * 1024;
  return host;
}

}  // namespace dtrun::bench

// ReadMachine for a dtrun built without hwloc.
#include <sched.h>

#include <cerrno>

#include "core/binding/machine.h"

namespace dtrun::binding {

bool KnowsMachine() { return false; }

Result<Topology> ReadMachine() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return Error::System("read the affinity mask that dtrun was given", errno);
  Topology out;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) out.cores.push_back(Core{0, 0, {processor}});
  }
  return out;
}

Result<Topology> ImagineMachine(const std::string&) {
  return Error{DTRUN_UNSUPPORTED, "this dtrun was built without hwloc"};
}

}  // namespace dtrun::binding

#include "core/base/exhausted.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <new>

namespace dtrun {

std::string Exhausted(const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown) == nullptr)
    return fmt::format("{}; look at `ulimit -a`", thrown.what());
  constexpr rlim_t kUnit = 1024;  // of a shell's ulimit
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited) return fmt::format("out of memory; raise `ulimit -v`, which is {}", limit.rlim_cur / kUnit);
  return "out of memory; end other programs of this host, or raise the memory limit of its cgroup";
}

}  // namespace dtrun

#include "core/base/owner.h"

#include <unistd.h>

#include <climits>
#include <cstdint>
#include <fstream>
#include <string>

namespace dtrun {
namespace {

// The id that stands for users or groups missing in `map`; -1 if the map is complete.
std::uint32_t Unmapped(const char* map, const char* overflow) {
  std::ifstream ranges(map);
  std::uint64_t inside = 0, outside = 0, count = 0;
  const bool whole = (ranges >> inside >> outside >> count) && count >= UINT_MAX;
  std::uint32_t number = 65534;
  std::ifstream(overflow) >> number;
  return whole || count == 0 ? static_cast<std::uint32_t>(-1) : number;
}

}  // namespace

bool IsStranger(uid_t owner, bool shared) {
  static const uid_t unmapped = Unmapped("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
  return owner != 0 && owner != ::geteuid() && (shared || owner != unmapped);
}

bool IsStrangeGroup(gid_t group) {
  static const gid_t unmapped = Unmapped("/proc/self/gid_map", "/proc/sys/kernel/overflowgid");
  return group != 0 && group != ::getegid() && group != unmapped;
}

}  // namespace dtrun

#include "core/plugin/given_struct.h"

#include <fmt/format.h>

namespace dtrun::plugin {

std::string UnknownFlags(std::uint32_t flags, std::uint32_t known) {
  if ((flags & DTRUN_FLAGS_MUST_UNDERSTAND & ~known) == 0) return {};
  return fmt::format("its flags are {:#x}, of which this dtrun does not know all", flags);
}

}  // namespace dtrun::plugin

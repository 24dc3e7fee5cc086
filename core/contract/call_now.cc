#include "core/contract/call_now.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/contract/ring.h"

namespace dtrun::contract {

std::optional<CallNow> CallOf(const RecorderMemory& recorder_memory, int rank) {
  std::optional<CallNow> last;
  std::uint64_t most = 0;
  for (int index = 0; index < kRings; ++index) {
    const Ring& ring = recorder_memory.RingOf(rank, index);
    const auto [heading, damage] = ReadHeading(ring, recorder_memory.ranks);
    if (damage != nullptr) return std::nullopt;
    if (!heading || heading->started == 0) continue;
    sdk::Signature call;
    std::uint64_t chain = 0;
    const std::uint64_t number = heading->ended + 1;
    if (number <= heading->started) {
      const std::string text =
          Read(ring, number, &call, &chain) ? CallText(call, DeviceOf(ring)) : "a collective";
      const std::size_t name = std::min(text.find(' '), text.size());
      return CallNow{true, fmt::format("{} #{} on '{}'{}", text.substr(0, name), number, heading->name,
                                       text.substr(name))};
    }
    if (heading->started <= most) continue;
    most = heading->started;
    last = CallNow{false, fmt::format("no collective after #{} on '{}'", heading->started, heading->name)};
  }
  return last;
}

}  // namespace dtrun::contract

#include "core/contract/call_now.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/contract/messages.h"
#include "core/contract/ring.h"

namespace dtrun::contract {

std::optional<RecordedCall> CallOf(const RecorderMemory& recorder_memory, int rank) {
  std::optional<RecordedCall> last, message;
  std::uint64_t most = 0;
  for (int index = 0; index < kRings; ++index) {
    const Ring& ring = recorder_memory.RingOf(rank, index);
    const auto [heading, damage] = ReadHeading(ring, recorder_memory.ranks);
    if (damage != nullptr) return std::nullopt;
    if (!heading) continue;
    if (auto found = message ? std::nullopt : FindUnderWay(ring)) {
      message = RecordedCall{.under_way = true,
                             .message = true,
                             .polled = AskedLately(ring),
                             .group = Printable(heading->name),
                             .number = found->number,
                             .name = std::move(found->text)};
    }
    sdk::Signature call;
    std::uint64_t chain = 0;
    const std::uint64_t number = heading->ended + 1;
    if (number <= heading->started) {
      const std::string text =
          Read(ring, number, &call, &chain) ? CallText(call, DeviceOf(ring)) : "a collective";
      const std::size_t space = std::min(text.find(' '), text.size());
      return RecordedCall{.under_way = true,
                          .polled = AskedLately(ring),
                          .group = Printable(heading->name),
                          .number = number,
                          .name = text.substr(0, space),
                          .details = text.substr(std::min(space + 1, text.size()))};
    }
    if (last && heading->started <= most) continue;
    most = heading->started;
    last = RecordedCall{.group = Printable(heading->name), .number = heading->started};
  }
  return message ? message : last;
}

}  // namespace dtrun::contract

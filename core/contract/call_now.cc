#include "core/contract/call_now.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/text.h"
#include "core/contract/messages.h"
#include "core/contract/ring.h"

namespace dtrun::contract {
namespace {

// "(rank 0 has sent tag 5)" of a receive from `peer`, if there are messages of it with other tags.
std::string DetailsOf(const RecorderMemory& recorder_memory, const Ring& to, std::uint64_t communicator,
                      int peer) {
  for (int rank = 0; rank < recorder_memory.ranks; ++rank) {
    for (const Ring& from : recorder_memory.RingsOf(rank)) {
      const auto [heading, damage] = ReadHeading(from, recorder_memory.ranks);
      if (!heading || heading->communicator != communicator || heading->rank != peer) continue;
      const std::string text = UnreceivedText(from, to);
      return text.empty() ? "" : "(" + text + ")";
    }
  }
  return {};
}

CallNow MessageNow(const RecorderMemory& recorder_memory, const Ring& ring, const Heading& heading,
                   MessageUnderWay found) {
  CallNow now;
  now.call = {.under_way = true,
              .message = true,
              .polled = AskedLately(ring),
              .group = Printable(heading.name),
              .number = found.number,
              .name = std::move(found.text)};
  if (found.receives && found.peers.size() == 1)
    now.call.details = DetailsOf(recorder_memory, ring, heading.communicator, found.peers.front());
  now.awaited.emplace();
  if (!found.known) return now;
  now.awaited->communicator = heading.communicator;
  now.awaited->either = found.peers.size() != 1;
  now.awaited->ranks = std::move(found.peers);
  return now;
}

CallNow CollectiveNow(const Ring& ring, const Heading& heading) {
  const std::uint64_t number = heading.ended + 1;
  const std::optional<Remembered> seen = Read(ring, number);
  const std::string text = seen ? CallText(seen->call, DeviceOf(ring)) : "a collective";
  const std::size_t space = std::min(text.find(' '), text.size());
  return {RecordedCall{.under_way = true,
                       .polled = AskedLately(ring),
                       .group = Printable(heading.name),
                       .number = number,
                       .name = text.substr(0, space),
                       .details = text.substr(std::min(space + 1, text.size()))},
          Awaited{.communicator = heading.communicator, .number = number}};
}

}  // namespace

std::optional<CallNow> CallOf(const RecorderMemory& recorder_memory, int rank) {
  std::optional<CallNow> last, message, collective;
  std::uint64_t most = 0;
  for (const Ring& ring : recorder_memory.RingsOf(rank)) {
    const auto [heading, damage] = ReadHeading(ring, recorder_memory.ranks);
    if (damage != nullptr) return std::nullopt;
    if (!heading) continue;
    if (heading->ended < heading->started) {
      if (collective) {
        collective->awaited.emplace();
      } else {
        collective = CollectiveNow(ring, *heading);
      }
      continue;
    }
    if (auto found = FindUnderWay(ring)) {
      if (message) {
        message->awaited.emplace();
      } else {
        message = MessageNow(recorder_memory, ring, *heading, *std::move(found));
      }
    }
    if (last && heading->started <= most) continue;
    most = heading->started;
    last = CallNow{RecordedCall{.group = Printable(heading->name), .number = heading->started}, {}};
  }
  if (collective) return collective;
  return message ? message : last;
}

std::vector<Membership> GroupsOf(const RecorderMemory& recorder_memory, int rank) {
  std::vector<Membership> groups;
  for (const Ring& ring : recorder_memory.RingsOf(rank)) {
    const auto [heading, damage] = ReadHeading(ring, recorder_memory.ranks);
    if (heading) groups.push_back({heading->communicator, heading->rank, heading->started});
  }
  return groups;
}

std::uint64_t ProgressOf(const RecorderMemory& recorder_memory, int rank) {
  std::uint64_t all = 0;
  for (const Ring& ring : recorder_memory.RingsOf(rank)) {
    all += ring.started.load(std::memory_order_relaxed) + ring.ended.load(std::memory_order_relaxed) +
           MessagesOf(ring);
  }
  return all;
}

}  // namespace dtrun::contract

#include "core/contract/heading.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/printable.h"
#include "core/contract/ring.h"

namespace dtrun::contract {
namespace {

constexpr std::uint64_t kMostCalls = std::uint64_t{1} << 62;  // of a communicator; over a century

const char* DamageOf(const Heading& heading, std::string_view name, bool name_ends, int ranks) {
  if (!name_ends) return "a communicator's name has no end";
  // The digest of a truncated name differs from that of the whole name.
  const bool whole = name.size() < kRingNameBytes - 1;
  if (heading.communicator != 0 && whole && NameDigest(name) != heading.communicator) {
    return "a communicator's name and its digest do not belong together";
  }
  if (heading.size < 1 || heading.size > ranks) return "a communicator has more ranks than the job";
  if (heading.rank < 0 || heading.rank >= heading.size) return "a communicator does not have the rank";
  if (heading.started > kMostCalls || heading.ended > heading.started) return "more calls ended than began";
  return nullptr;
}

}  // namespace

HeadingRead ReadHeading(const Ring& ring, int ranks) {
  Heading heading;
  heading.communicator = ring.communicator.load(std::memory_order_acquire);
  heading.ended = ring.ended.load(std::memory_order_acquire);  // first: it never overtakes `started`
  heading.started = ring.started.load(std::memory_order_acquire);
  char name[kRingNameBytes];
  std::memcpy(name, ring.name, sizeof name);
  std::memcpy(&heading.rank, &ring.rank, sizeof heading.rank);
  std::memcpy(&heading.size, &ring.size, sizeof heading.size);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (ring.communicator.load(std::memory_order_relaxed) != heading.communicator) return {};
  const std::size_t length = ::strnlen(name, sizeof name);
  const char* const damage = DamageOf(heading, {name, length}, length < sizeof name, ranks);
  if (heading.communicator == 0 && (length == 0 || damage != nullptr)) return {};
  if (damage != nullptr) return {std::nullopt, damage};
  heading.name = Printable({name, length});
  return {std::move(heading), nullptr};
}

const char* DamageIn(const Ring& ring, const Heading& heading) {
  const auto remembered = static_cast<std::uint64_t>(kEntries - 1);
  std::uint64_t number = heading.started > remembered ? heading.started - remembered : 0;
  std::optional<std::uint64_t> before;  // the chain of `number`
  if (number == 0) before = 0;
  while (number < heading.started) {
    ++number;
    sdk::Signature call;
    std::uint64_t chain = 0;
    if (!Read(ring, number, &call, &chain)) {
      before.reset();
      continue;
    }
    if (before && NextChain(*before, call) != chain) return "its calls do not follow from each other";
    if (const auto checkpoint = ReadCheckpoint(ring, number); checkpoint && *checkpoint != chain) {
      return "a checkpoint is not the call's";
    }
    before = chain;
  }
  return nullptr;
}

}  // namespace dtrun::contract

#include "core/contract/messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/contract/ring.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::contract {
namespace {

constexpr int kProbes = 8;       // rows that a key may be in
constexpr int kRemembered = 24;  // messages with their kind of memory in `last`
constexpr std::uint64_t kRecent = (std::uint64_t{1} << kRemembered) - 1;
constexpr std::uint64_t kUncounted = ~std::uint64_t{0};  // in `last`, for good
constexpr std::uint64_t kReceives = std::uint64_t{1} << 32;

std::uint64_t KeyOf(bool sends, std::int32_t peer, std::uint32_t tag) {
  return static_cast<std::uint64_t>(peer + 1) << 33 | (sends ? 0 : kReceives) | tag;
}

std::size_t RowOf(std::uint64_t key, int probe) {
  static_assert((kMessageRows & (kMessageRows - 1)) == 0);
  return ((key * 0x9e3779b97f4a7c15u >> 40) + static_cast<std::uint64_t>(probe)) & (kMessageRows - 1);
}

std::uint64_t SealOf(const MessageLog& log) {
  std::uint64_t contents = 0;
  for (const std::uint64_t content : log.contents) contents = (contents << 9 | contents >> 55) ^ content;
  return (log.key ^ log.last * 0xff51afd7ed558ccdu ^ (log.first << 32 | log.first >> 32) ^ contents) *
             0x9e3779b97f4a7c15u |
         1;
}

void Store(MessageRow& row, const MessageLog& log) {
  row.seal.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  row.last.store(log.last, std::memory_order_relaxed);
  row.first.store(log.first, std::memory_order_relaxed);
  for (std::size_t i = 0; i < log.contents.size(); ++i)
    row.contents[i].store(log.contents[i], std::memory_order_relaxed);
  row.key.store(log.key, std::memory_order_relaxed);
  row.seal.store(SealOf(log), std::memory_order_release);
}

MessageLog Copy(const MessageRow& row) {
  MessageLog log{row.key.load(std::memory_order_relaxed),
                 row.last.load(std::memory_order_relaxed),
                 row.first.load(std::memory_order_relaxed),
                 {}};
  for (std::size_t i = 0; i < log.contents.size(); ++i)
    log.contents[i] = row.contents[i].load(std::memory_order_relaxed);
  return log;
}

// Empty if it is changing, or was overwritten.
std::optional<MessageLog> Load(const MessageRow& row) {
  const std::uint64_t seal = row.seal.load(std::memory_order_acquire);
  const MessageLog log = Copy(row);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (seal != SealOf(log) || row.seal.load(std::memory_order_relaxed) != seal) return std::nullopt;
  return log;
}

// The row with that key, or a free one; null if all its possible rows are taken.
template <class AnyRing>
auto RowFor(AnyRing& ring, std::uint64_t key) -> decltype(&ring.messages[0]) {
  for (int probe = 0; probe < kProbes; ++probe) {
    auto& row = ring.messages[RowOf(key, probe)];
    const std::uint64_t here = row.key.load(std::memory_order_relaxed);
    if (here == key || here == 0) return &row;
  }
  return nullptr;
}

std::optional<MessageLog> Find(const Ring& ring, std::uint64_t key) {
  const MessageRow* const row = RowFor(ring, key);
  return row != nullptr && row->key.load(std::memory_order_relaxed) == key ? Load(*row) : std::nullopt;
}

std::uint64_t CountOf(const MessageLog& log) { return log.last >> kRemembered; }

// Whether message `number`, which was recorded, was in a device's memory; empty if that is not remembered.
std::optional<bool> OnDevice(const MessageLog& log, std::uint64_t number) {
  const std::uint64_t later = CountOf(log) - number, run = log.first >> 1;
  const bool first = (log.first & 1) != 0;
  if (later < kRemembered) return (log.last >> later & 1) != 0;
  if (number <= run) return first;
  if (number == run + 1) return !first;
  return std::nullopt;
}

constexpr int kCountBits = 56;

std::uint64_t& ContentOf(MessageLog& log, std::uint64_t number) {
  return log.contents[number % kMessageContents];
}

// Of message `number`; empty if it is not remembered.
std::optional<std::uint64_t> ContentOf(const MessageLog& log, std::uint64_t number) {
  if (number == 0 || number > CountOf(log) || CountOf(log) - number >= kMessageContents) return std::nullopt;
  return log.contents[number % kMessageContents];
}

// "float32 x 8"
std::string ContentText(std::uint64_t content) {
  return fmt::format("{} x {}", sdk::TypeName(static_cast<std::int32_t>(content >> kCountBits)),
                     content & ((std::uint64_t{1} << kCountBits) - 1));
}

MessageLog With(const MessageLog& log, const Message& message) {
  const std::uint64_t kind = message.on_device ? 1 : 0, count = CountOf(log), run = log.first >> 1;
  MessageLog next = log;
  next.last = (count + 1) << kRemembered | ((log.last << 1 | kind) & kRecent);
  if (count == 0 || (run == count && (log.first & 1) == kind)) next.first = (count + 1) << 1 | kind;
  ContentOf(next, count + 1) = std::uint64_t{message.dtype} << kCountBits | message.count;
  return next;
}

std::optional<std::uint64_t> FirstInOtherMemory(const MessageLog& a, const MessageLog& b) {
  const std::uint64_t last = std::min(CountOf(a), CountOf(b)), most = std::max(CountOf(a), CountOf(b));
  const auto differs = [&](std::uint64_t number) {
    if (number > last) return false;
    const std::optional<bool> of_a = OnDevice(a, number), of_b = OnDevice(b, number);
    return of_a && of_b && *of_a != *of_b;
  };
  // Either their runs of one kind end at different places, or the last messages show the difference.
  for (const std::uint64_t number : {std::uint64_t{1}, std::min(a.first >> 1, b.first >> 1) + 1}) {
    if (differs(number)) return number;
  }
  for (std::uint64_t number = most > kRemembered ? most - kRemembered + 1 : 1; number <= last; ++number) {
    if (differs(number)) return number;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> FirstWithOtherContent(const MessageLog& a, const MessageLog& b) {
  const std::uint64_t last = std::min(CountOf(a), CountOf(b));
  for (std::uint64_t number = last > kMessageContents ? last - kMessageContents + 1 : 1; number <= last;
       ++number) {
    const std::optional<std::uint64_t> of_a = ContentOf(a, number), of_b = ContentOf(b, number);
    if (of_a && of_b && *of_a != *of_b) return number;
  }
  return std::nullopt;
}

std::string MemoryOf(const Ring& ring, bool on_device) {
  return on_device ? "memory of " + DeviceOf(ring) : "memory of the host";
}

}  // namespace

std::optional<MessageLog> Note(Ring& ring, const Message& message) {
  const std::uint64_t key = KeyOf(message.sends, message.peer, message.tag);
  MessageRow* const row = RowFor(ring, key);
  if (row == nullptr) {
    ring.others_under_way.fetch_add(1, std::memory_order_relaxed);
    if (message.peer < 0) ring.any_without_row.store(true, std::memory_order_release);
    return std::nullopt;
  }
  MessageLog before = Copy(*row);
  before.key = key;
  if (before.last == kUncounted) return before;
  MessageLog after = With(before, message);
  if (!message.counted) after.last = kUncounted;
  Store(*row, after);
  return before;
}

void NoteEnd(Ring& ring, const Message& message) {
  MessageRow* const row = RowFor(ring, KeyOf(message.sends, message.peer, message.tag));
  if (row != nullptr)
    row->ended.fetch_add(1, std::memory_order_relaxed);
  else
    ring.others_under_way.fetch_sub(1, std::memory_order_relaxed);
}

std::uint64_t MessagesOf(const Ring& ring) {
  auto all = static_cast<std::uint64_t>(ring.others_under_way.load(std::memory_order_relaxed));
  for (const MessageRow& row : ring.messages) {
    all += row.ended.load(std::memory_order_relaxed);
    if (const std::optional<MessageLog> log = Load(row)) all += CountOf(*log);
  }
  return all;
}

std::optional<MessageUnderWay> FindUnderWay(const Ring& ring) {
  std::optional<MessageUnderWay> found;
  const bool others = ring.others_under_way.load(std::memory_order_relaxed) > 0;
  bool receives = false;
  for (const MessageRow& row : ring.messages) {
    const std::optional<MessageLog> log = Load(row);
    if (!log || log->key == 0 || log->last == kUncounted) continue;
    if (CountOf(*log) <= row.ended.load(std::memory_order_relaxed)) continue;
    const bool receive = (log->key & kReceives) != 0;
    if (receives && !receive) continue;
    const int peer = static_cast<int>(log->key >> 33) - 1;
    if (!found || receive != receives) {
      found = {fmt::format("{} {} with tag {}", receive ? "recv from" : "send to",
                           peer < 0 ? std::string("any rank") : fmt::format("rank {}", peer),
                           static_cast<std::uint32_t>(log->key)),
               CountOf(*log),
               {}};
    }
    receives = receive;
    if (std::ranges::count(found->peers, peer) == 0) found->peers.push_back(peer);
  }
  if (others && !found) found = {"a send or recv", 0, {}};
  if (found) {
    found->receives = receives;
    found->known = !others;
    if (others || std::ranges::count(found->peers, -1) > 0) found->peers.clear();
  }
  return found;
}

void TakeBack(Ring& ring, const MessageLog& before) {
  if (MessageRow* const row = RowFor(ring, before.key)) Store(*row, before);
}

void ClearMessages(Ring& ring) {
  for (MessageRow& row : ring.messages) {
    row.key = 0;
    row.last = 0;
    row.first = 0;
    for (auto& content : row.contents) content = 0;
    row.seal = 0;
    row.ended = 0;
  }
  ring.others_under_way = 0;
  ring.any_without_row = false;
  ring.asked = 0;
}

std::vector<MessageLog> ReadMessages(const Ring& ring) {
  std::vector<MessageLog> logs;
  for (const MessageRow& row : ring.messages) {
    if (const auto log = Load(row); log && log->key != 0) logs.push_back(*log);
  }
  if (ring.any_without_row.load(std::memory_order_acquire)) logs.clear();
  return logs;
}

void WriteMessages(Ring& ring, const std::vector<MessageLog>& logs) {
  for (const MessageLog& log : logs) {
    if (MessageRow* const row = log.key == 0 ? nullptr : RowFor(ring, log.key)) Store(*row, log);
  }
}

std::uint64_t MarkOf(const Ring& ring) {
  std::uint64_t mark = 0;
  for (const MessageRow& row : ring.messages) mark += row.seal.load(std::memory_order_acquire);
  return mark;
}

std::vector<std::uint32_t> UnreceivedTags(const Ring& from, const Ring& to) {
  std::vector<std::uint32_t> tags;
  for (const MessageRow& row : from.messages) {
    const std::optional<MessageLog> sent = Load(row);
    if (!sent || sent->last == kUncounted || sent->key >> 32 != KeyOf(true, to.rank, 0) >> 32) continue;
    const auto tag = static_cast<std::uint32_t>(sent->key);
    const std::uint64_t key = KeyOf(false, from.rank, tag);
    const std::optional<MessageLog> received = Find(to, key);
    if (Find(to, KeyOf(false, -1, tag)) || (!received && RowFor(to, key) == nullptr)) continue;
    if (received && (received->last == kUncounted || CountOf(*received) >= CountOf(*sent))) continue;
    tags.push_back(tag);
  }
  if (to.any_without_row.load(std::memory_order_acquire)) tags.clear();
  std::ranges::sort(tags);
  return tags;
}

std::string UnreceivedText(const Ring& from, const Ring& to) {
  constexpr std::size_t kMostShown = 4;
  std::vector<std::uint32_t> tags = UnreceivedTags(from, to);
  if (tags.empty()) return {};
  const char* const more = tags.size() > kMostShown ? " and others" : "";
  tags.resize(std::min(tags.size(), kMostShown));
  return fmt::format("rank {} has sent tag{} {}{}", from.rank, tags.size() == 1 ? "" : "s",
                     fmt::join(tags, ", "), more);
}

bool HasMessages(const Ring& ring) {
  return std::ranges::any_of(
      ring.messages, [](const MessageRow& row) { return row.key.load(std::memory_order_relaxed) != 0; });
}

std::optional<MessageDifference> DifferingMessage(const Ring& from, const std::string& name,
                                                  const std::function<const Ring*(int)>& ring_of) {
  for (const MessageRow& row : from.messages) {
    const std::optional<MessageLog> sent = Load(row);
    if (!sent || sent->key == 0 || (sent->key & kReceives) != 0 || sent->last == kUncounted) continue;
    const int peer = static_cast<int>(sent->key >> 33) - 1;
    const Ring* const ring = ring_of(peer);
    if (ring == nullptr) continue;
    const Ring& to = *ring;
    const auto tag = static_cast<std::uint32_t>(sent->key);
    const std::optional<MessageLog> received = Find(to, KeyOf(false, from.rank, tag));
    // Read last: a receive that follows a message from any rank is recorded later than that message.
    const bool from_any =
        Find(to, KeyOf(false, -1, tag)).has_value() || to.any_without_row.load(std::memory_order_acquire);
    if (!received || received->last == kUncounted || from_any) continue;
    const auto differs = [&](std::uint64_t number, const std::string& sends, const std::string& receives,
                             const char* next) {
      return MessageDifference{
          from.rank, peer,
          fmt::format(
              "message {} with tag {} from rank {} to rank {} on '{}' differs: rank {} sends {}, rank {} "
              "receives {}; {}",
              number, tag, from.rank, peer, name, from.rank, sends, peer, receives, next)};
    };
    if (const auto number = FirstInOtherMemory(*sent, *received))
      return differs(*number, MemoryOf(from, *OnDevice(*sent, *number)),
                     "into " + MemoryOf(to, *OnDevice(*received, *number)),
                     "use one kind of memory on both sides, or a tag for each kind");
    if (const auto number = FirstWithOtherContent(*sent, *received))
      return differs(*number, ContentText(*ContentOf(std::as_const(*sent), *number)),
                     ContentText(*ContentOf(std::as_const(*received), *number)),
                     "a send and its receive have one type and count");
  }
  return std::nullopt;
}

}  // namespace dtrun::contract

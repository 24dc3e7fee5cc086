#include "core/contract/messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/contract/ring.h"

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
  return (log.key ^ log.last * 0xff51afd7ed558ccdu ^ (log.first << 32 | log.first >> 32)) *
             0x9e3779b97f4a7c15u |
         1;
}

void Store(MessageRow& row, const MessageLog& log) {
  row.seal.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  row.last.store(log.last, std::memory_order_relaxed);
  row.first.store(log.first, std::memory_order_relaxed);
  row.key.store(log.key, std::memory_order_relaxed);
  row.seal.store(SealOf(log), std::memory_order_release);
}

// Empty if it is changing, or was overwritten.
std::optional<MessageLog> Load(const MessageRow& row) {
  const std::uint64_t seal = row.seal.load(std::memory_order_acquire);
  const MessageLog log{row.key.load(std::memory_order_relaxed), row.last.load(std::memory_order_relaxed),
                       row.first.load(std::memory_order_relaxed)};
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

MessageLog With(const MessageLog& log, bool on_device) {
  const std::uint64_t kind = on_device ? 1 : 0, count = CountOf(log), run = log.first >> 1;
  MessageLog next = log;
  next.last = (count + 1) << kRemembered | ((log.last << 1 | kind) & kRecent);
  if (count == 0 || (run == count && (log.first & 1) == kind)) next.first = (count + 1) << 1 | kind;
  return next;
}

std::optional<std::uint64_t> FirstDiffering(const MessageLog& a, const MessageLog& b) {
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

std::string MemoryOf(const Ring& ring, bool on_device) {
  return on_device ? "memory of " + DeviceOf(ring) : "memory of the host";
}

}  // namespace

std::optional<MessageLog> Note(Ring& ring, const Message& message) {
  const std::uint64_t key = KeyOf(message.sends, message.peer, message.tag);
  MessageRow* const row = RowFor(ring, key);
  if (row == nullptr) {
    ring.others_under_way.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  const MessageLog before{key, row->last.load(std::memory_order_relaxed),
                          row->first.load(std::memory_order_relaxed)};
  if (before.last == kUncounted) return before;
  MessageLog after = With(before, message.on_device);
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
    row.seal = 0;
    row.ended = 0;
  }
  ring.others_under_way = 0;
  ring.asked = 0;
}

std::vector<MessageLog> ReadMessages(const Ring& ring) {
  std::vector<MessageLog> logs;
  for (const MessageRow& row : ring.messages) {
    if (const auto log = Load(row); log && log->key != 0) logs.push_back(*log);
  }
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

bool UsesDevices(const Ring& ring) { return ring.device[0] != '\0'; }

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
    const bool from_any = Find(to, KeyOf(false, -1, tag)).has_value();
    if (!received || received->last == kUncounted || from_any) continue;
    const std::optional<std::uint64_t> number = FirstDiffering(*sent, *received);
    if (!number) continue;
    std::string text = fmt::format(
        "message {} with tag {} from rank {} to rank {} on '{}' differs: rank {} sends {}, rank {} receives "
        "into {}; use one kind of memory on both sides, or a tag for each kind",
        *number, tag, from.rank, peer, name, from.rank, MemoryOf(from, *OnDevice(*sent, *number)), peer,
        MemoryOf(to, *OnDevice(*received, *number)));
    return MessageDifference{from.rank, peer, std::move(text)};
  }
  return std::nullopt;
}

}  // namespace dtrun::contract

#include "core/contract/ring.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/base/rough_clock.h"
#include "core/base/text.h"
#include "core/contract/messages.h"

namespace dtrun::contract {
namespace {

using Words = sdk::SignatureWords;

// The words of a call that ranks must agree on.
Words Compared(const Words& call) {
  if ((call[0] & kConnects) == 0) [[likely]]
    return call;
  return {kConnects, 0, 0};
}

// Mixes one word into a digest; from MurmurHash3's finaliser.
std::uint64_t Mix(std::uint64_t digest, std::uint64_t word) {
  digest ^= word * 0x9e3779b97f4a7c15u;
  digest = (digest ^ (digest >> 33)) * 0xff51afd7ed558ccdu;
  return digest ^ (digest >> 33);
}

void Store(Entry& entry, std::uint64_t number, const Words& words, std::uint64_t chain) {
  entry.number.store(0, std::memory_order_release);  // no reader mixes old and new
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = 0; i < words.size(); ++i) entry.words[i].store(words[i], std::memory_order_relaxed);
  entry.chain.store(chain, std::memory_order_relaxed);
  entry.number.store(number, std::memory_order_release);
}

std::uint64_t Chain(std::uint64_t chain, const Words& words) {
  for (const std::uint64_t word : words) chain = Mix(chain, word);
  return chain;
}

std::uint64_t SealOf(std::uint64_t number, std::uint64_t chain) { return Mix(Mix(0, number), chain); }

}  // namespace

bool Alike(const sdk::Signature& a, const sdk::Signature& b) {
  return Compared(a.Words()) == Compared(b.Words());
}

std::string CallText(const sdk::Signature& call, const std::string& device) {
  if (call.kind == kConnects) return "connect (" + sdk::MemoryText(call, device) + ")";
  sdk::Signature operation = call;
  operation.kind = static_cast<std::uint8_t>(call.kind & ~kConnects);
  return sdk::SignatureText(operation, device);
}

std::uint64_t NextChain(std::uint64_t chain, const sdk::Signature& call) {
  return Chain(chain, Compared(call.Words()));
}

void NameDevice(Ring& ring, std::string_view name) {
  const std::size_t length = std::min(name.size(), kDeviceNameBytes - 1);
  std::copy_n(name.data(), length, ring.device);  // an empty view has no address to copy from
  ring.device[length] = '\0';
}

std::string DeviceOf(const Ring& ring) {
  char name[kDeviceNameBytes];
  std::memcpy(name, ring.device, sizeof name);
  return Printable({name, ::strnlen(name, sizeof name)});
}

void Begin(Ring& ring, std::uint64_t number, const sdk::Signature& call) {
  const std::uint64_t before =
      number == 1 ? 0 : ring.entries[(number - 1) % kEntries].chain.load(std::memory_order_relaxed);
  const Words words = call.Words();
  const std::uint64_t chain = Chain(before, Compared(words));
  Store(ring.entries[number % kEntries], number, words, chain);
  if (number % kCheckpointEvery == 0) WriteCheckpoint(ring, number, chain);
  ring.started.store(number, std::memory_order_release);
}

void Write(Ring& ring, std::uint64_t number, const sdk::Signature& call, std::uint64_t chain) {
  Store(ring.entries[number % kEntries], number, call.Words(), chain);
}

void End(Ring& ring, std::uint64_t number) {
  if (number > ring.ended.load(std::memory_order_relaxed)) {
    ring.ended.store(number, std::memory_order_release);
  }
}

void NoteAsked(Ring& ring) { ring.asked.store(RoughNow(), std::memory_order_relaxed); }

bool AskedLately(const Ring& ring) {
  constexpr std::int64_t kLately = 2'000'000'000;
  const std::int64_t asked = ring.asked.load(std::memory_order_relaxed);
  return asked > 0 && RoughNow() - asked < kLately;
}

std::optional<Remembered> Read(const Ring& ring, std::uint64_t number) {
  const Entry& entry = ring.entries[number % kEntries];
  if (entry.number.load(std::memory_order_acquire) != number) return std::nullopt;
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = entry.words[i].load(std::memory_order_relaxed);
  const std::uint64_t chain = entry.chain.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.number.load(std::memory_order_relaxed) != number) return std::nullopt;
  return Remembered{sdk::Signature::OfWords(words), chain};
}

std::optional<std::uint64_t> ReadCheckpoint(const Ring& ring, std::uint64_t number) {
  const Checkpoint& checkpoint = ring.checkpoints[number / kCheckpointEvery % kCheckpoints];
  if (checkpoint.number.load(std::memory_order_acquire) != number) return std::nullopt;
  const std::uint64_t chain = checkpoint.chain.load(std::memory_order_relaxed);
  const std::uint64_t seal = checkpoint.seal.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (checkpoint.number.load(std::memory_order_relaxed) != number) return std::nullopt;
  if (seal != SealOf(number, chain)) return std::nullopt;
  return chain;
}

void WriteCheckpoint(Ring& ring, std::uint64_t number, std::uint64_t chain) {
  Checkpoint& checkpoint = ring.checkpoints[number / kCheckpointEvery % kCheckpoints];
  checkpoint.number.store(0, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_release);
  checkpoint.chain.store(chain, std::memory_order_relaxed);
  checkpoint.seal.store(SealOf(number, chain), std::memory_order_relaxed);
  checkpoint.number.store(number, std::memory_order_release);
}

std::uint64_t LastCheckpoint(const Ring& ring) {
  std::uint64_t last = 0;
  for (const Checkpoint& checkpoint : ring.checkpoints) {
    const std::uint64_t number = checkpoint.number.load(std::memory_order_acquire);
    if (number > last && number % kCheckpointEvery == 0 && ReadCheckpoint(ring, number)) last = number;
  }
  return last;
}

Ring* OpenRing(const RecorderMemory& recorder_memory, int world_rank, std::uint64_t communicator,
               std::string_view name, int rank, int size, std::uint64_t identity) {
  for (Ring& ring : recorder_memory.RingsOf(world_rank)) {
    if (ring.communicator.load(std::memory_order_relaxed) != 0) continue;
    ring.identity = identity;
    ring.started = 0;
    ring.ended = 0;
    ring.moving = false;
    for (Entry& entry : ring.entries) entry.number = 0;
    for (Checkpoint& checkpoint : ring.checkpoints) checkpoint.number = 0;
    ClearMessages(ring);
    ring.rank = rank;
    ring.size = size;
    const std::size_t length = std::min(name.size(), kRingNameBytes - 1);
    std::memcpy(ring.name, name.data(), length);
    ring.name[length] = '\0';
    NameDevice(ring, {});
    ring.communicator.store(communicator, std::memory_order_release);
    return &ring;
  }
  return nullptr;
}

std::uint64_t NameDigest(std::string_view name) {
  std::uint64_t digest = 0;
  for (const char letter : name) digest = Mix(digest, static_cast<unsigned char>(letter));
  return digest | 1;
}

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
  heading.identity = ring.identity.load(std::memory_order_acquire);
  heading.ended = ring.ended.load(std::memory_order_acquire);  // first: it never overtakes `started`
  heading.started = ring.started.load(std::memory_order_acquire);
  char name[kRingNameBytes];
  std::memcpy(name, ring.name, sizeof name);
  std::memcpy(&heading.rank, &ring.rank, sizeof heading.rank);
  std::memcpy(&heading.size, &ring.size, sizeof heading.size);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (ring.communicator.load(std::memory_order_relaxed) != heading.communicator) return {};
  if (ring.identity.load(std::memory_order_relaxed) != heading.identity) return {};
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
    const std::optional<Remembered> seen = Read(ring, number);
    if (seen && before && NextChain(*before, seen->call) != seen->chain)
      return "its calls do not follow from each other";
    const auto checkpoint = ReadCheckpoint(ring, number);
    if (seen && checkpoint && *checkpoint != seen->chain) return "a checkpoint is not the call's";
    before = seen ? std::optional(seen->chain) : std::nullopt;
  }
  return nullptr;
}

}  // namespace dtrun::contract

#include "meeting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "text.h"

namespace dtrun::mpi_plugin {
namespace {

// PageHeader::gathering: 16 bits of the call's number, 16 of how many have come to it, and
// the digest of what they came for.
struct Gathering {
  std::uint16_t call;
  std::uint16_t come;
  std::uint32_t digest;

  static Gathering Unpack(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word >> 48), static_cast<std::uint16_t>(word >> 32),
            static_cast<std::uint32_t>(word)};
  }
  std::uint64_t Pack() const {
    return static_cast<std::uint64_t>(call) << 48 | static_cast<std::uint64_t>(come) << 32 | digest;
  }
};

std::uint16_t Short(std::uint64_t call) { return static_cast<std::uint16_t>(call); }

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the bell is a futex");

long Futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr, 0);
}

}  // namespace

bool Meeting::Come(const Agenda& agenda) {
  PageSlot& own = page_.slot(rank_);
  own.kind.store(agenda.kind, std::memory_order_relaxed);
  own.dtype.store(agenda.dtype, std::memory_order_relaxed);
  own.reduce.store(agenda.reduce, std::memory_order_relaxed);
  own.root.store(agenda.root, std::memory_order_relaxed);
  own.count.store(agenda.count, std::memory_order_relaxed);
  own.call.store(agenda.call, std::memory_order_release);

  std::atomic<std::uint64_t>& word = page_.header().gathering;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    Gathering now = Gathering::Unpack(seen);
    // The call before this one is complete, because this rank came to it.
    if (now.call != Short(agenda.call) || now.come == 0) now = {Short(agenda.call), 0, agenda.digest};
    if (now.digest != agenda.digest) ThrowDisagreement(agenda);
    ++now.come;
    if (!word.compare_exchange_weak(seen, now.Pack())) continue;
    if (now.come < size_) return false;
    if (page_.header().sleepers.load() != 0) Ring();
    return true;
  }
}

bool Meeting::Ready(std::uint64_t call) const {
  const Gathering now = Gathering::Unpack(page_.header().gathering.load(std::memory_order_acquire));
  return now.call != Short(call) || now.come == size_;
}

bool Meeting::GoBack(std::uint64_t call) {
  std::atomic<std::uint64_t>& word = page_.header().gathering;
  std::uint64_t seen = word.load(std::memory_order_acquire);
  for (;;) {
    Gathering now = Gathering::Unpack(seen);
    if (now.call != Short(call) || now.come == size_) return false;
    --now.come;
    if (word.compare_exchange_weak(seen, now.Pack())) return true;
  }
}

void Meeting::Sleep(std::uint64_t call, std::chrono::steady_clock::time_point until) {
  PageHeader& header = page_.header();
  const std::uint32_t heard = header.bell.load();
  header.sleepers.fetch_add(1);
  // The last to come looks for sleepers after it came, so one of the two sees the other.
  const auto left = until - std::chrono::steady_clock::now();
  if (!Ready(call) && left.count() > 0) {
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                           static_cast<long>(nanoseconds % 1'000'000'000)};
    Futex(header.bell, FUTEX_WAIT, heard, &timeout);
  }
  header.sleepers.fetch_sub(1);
}

void Meeting::Ring() {
  page_.header().bell.fetch_add(1);
  Futex(page_.header().bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void Meeting::Depart(Fate fate, const std::string& reason, int culprit) {
  PageSlot& own = page_.slot(rank_);
  if (own.fate.load() != Fate::kMember) return;
  const std::size_t length = std::min(reason.size(), sizeof own.reason - 1);
  std::memcpy(own.reason, reason.data(), length);
  own.reason[length] = '\0';
  own.culprit = culprit;
  own.fate.store(fate, std::memory_order_release);
  page_.header().departures.fetch_add(1);
  Ring();
}

std::optional<Meeting::Departure> Meeting::FindDeparture() const {
  std::optional<Departure> found;
  if (!anyone_departed()) return found;
  for (int rank = 0; rank < size_; ++rank) {
    const Fate fate = FateOf(rank);
    if (rank == rank_ || fate == Fate::kMember) continue;
    if (fate != Fate::kLeft) return Departure{rank, fate, page_.slot(rank).reason, page_.slot(rank).culprit};
    if (!found) found = Departure{rank, fate, "", -1};
  }
  return found;
}

void Meeting::ThrowDisagreement(const Agenda& agenda) const {
  const std::string here = DescribeCall(agenda.kind, agenda.dtype, agenda.reduce, agenda.root, agenda.count);
  for (int rank = 0; rank < size_; ++rank) {
    const PageSlot& slot = page_.slot(rank);
    if (rank == rank_ || slot.call.load(std::memory_order_acquire) != agenda.call) continue;
    const std::string there = DescribeCall(slot.kind, slot.dtype, slot.reduce, slot.root, slot.count);
    if (there == here) continue;
    throw sdk::Failure(DTRUN_INVALID_ARGUMENT,
                       "collective " + std::to_string(agenda.call) + " is " + here + " on rank " +
                           std::to_string(rank_) + " and " + there + " on rank " + std::to_string(rank) +
                           "; all ranks must make the same calls in the same order",
                       rank);
  }
  throw sdk::Failure(DTRUN_INVALID_ARGUMENT, "collective " + std::to_string(agenda.call) + ", " + here +
                                                 " on rank " + std::to_string(rank_) +
                                                 ", has other counts on another rank");
}

}  // namespace dtrun::mpi_plugin

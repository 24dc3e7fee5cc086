// The first pages of the memory that the ranks of one host share.
//
// Only the owning rank writes its members, except for the failure record, wakeups and sleepers flags.
// Counters only grow, modulo 2^32, and are compared as distances. core/comm/shm/group.h owns the mapping; any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dtrun/plugin/signature.hpp"

namespace dtrun::shm {

inline constexpr std::size_t kLine = 64;  // bytes of a cache line

inline constexpr std::size_t kPayloadBytes = 32;

// A rank's entry into a call, with its operand if small: one cache line, two used in turn. The payload is
// first because a kernel's vector may be as wide as a line: it must not reach into the next line, which the
// same rank is about to write.
struct alignas(kLine) Post {
  std::byte payload[kPayloadBytes];
  std::atomic<std::uint32_t> call_number{0};
  std::uint32_t flags = 0;
  sdk::SignatureWords call;
};
static_assert(sizeof(Post) == kLine);

// A counter that others wait for. A rank that goes to sleep on it sets `sleepers`.
struct alignas(kLine) Counter {
  std::atomic<std::uint32_t> value{0};
  std::atomic<std::uint32_t> sleepers{0};
};

enum class Presence : std::uint32_t { kAbsent, kHere, kLeft };

struct alignas(kLine) Rank {
  std::atomic<std::int32_t> pid{0};
  std::atomic<Presence> presence{Presence::kAbsent};
  std::atomic<bool> orders_asleep{false};  // supports Ordering::kBySleeper
  Counter step;                            // progress inside calls
  Counter wakeup;                          // raised by others when they moved this rank's messages
  alignas(kLine) std::atomic<std::uint32_t> post_sleepers{0};
  Post posts[2];
};

enum class FailureState : std::uint32_t { kNone, kBeingWritten, kSet };

// The first failure of the communicator; never changes once set.
struct alignas(kLine) FailureRecord {
  std::atomic<FailureState> state{FailureState::kNone};
  std::int32_t code = 0;
  std::int32_t rank = -1;  // the one that noticed it
  std::int32_t peer = -1;
  char text[480];
};

// Offsets in the shared memory, in bytes. Equal on all ranks.
struct Layout {
  explicit Layout(int ranks);

  std::size_t rank_at(int rank) const { return ranks + static_cast<std::size_t>(rank) * sizeof(Rank); }
  // How many elements `rank` sends to each rank: `size` numbers.
  std::size_t counts_at(int rank, std::uint32_t turn) const {
    return counts + (static_cast<std::size_t>(rank) * 2 + turn % 2) * size * sizeof(std::uint64_t);
  }
  std::size_t stage_at(int rank, std::uint32_t turn) const {
    return stages + (static_cast<std::size_t>(rank) * 2 + turn % 2) * stage_bytes;
  }
  std::size_t result_at(int rank, std::uint32_t turn) const {
    return results + (static_cast<std::size_t>(rank) * 2 + turn % 2) * result_bytes;
  }
  std::size_t channel_at(int from, int to) const {
    return channels + (static_cast<std::size_t>(from) * size + static_cast<std::size_t>(to)) * channel_bytes;
  }

  std::size_t size;           // ranks
  std::size_t stage_bytes;    // what a rank stages at a time
  std::size_t result_bytes;   // what a rank combines at a time
  std::size_t channel_bytes;  // messages in flight from one rank to another
  std::size_t ranks, counts, stages, results, channels;
  std::size_t total;
};

}  // namespace dtrun::shm

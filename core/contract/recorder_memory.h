// The flight recorder: what every rank of a host calls, in memory that outlives them.
//
// The agent makes one RecorderMemory for the ranks of its host, an anonymous shared file that they map. Each
// rank writes its own pages only: a call costs it a few stores and no message. The agent reads all of them,
// names calls that differ, and wakes the ranks. After a death it reports what each rank was doing. Pages of
// ranks elsewhere hold what their agents report (core/contract/window.h). Layout only; the comments say who
// may write each part.
//
// A rank maps its own pages for writing and all others for reading, so a stray write stays in its own pages.
// Readers do not trust a rank's pages: not a size, not a number, not the end of a text
// (core/contract/ring.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dtrun/plugin/signature.hpp"

namespace dtrun::contract {

inline constexpr std::uint32_t kRecorderVersion = 11;
inline constexpr int kRings = 16;                      // communicators of a rank that are recorded at a time
inline constexpr int kEntries = 128;                   // calls of each that are remembered
inline constexpr std::uint64_t kCheckpointEvery = 64;  // calls
inline constexpr int kCheckpoints = 64;                // of each communicator that are remembered
inline constexpr int kMessageRows = 32;     // peers, tags and directions of each that are remembered
inline constexpr int kMessageContents = 4;  // messages of a row with their type and count
inline constexpr std::size_t kRingNameBytes = 56;
inline constexpr std::size_t kDeviceNameBytes = 32;
inline constexpr int kThreadMarks =
    63;  // threads of a rank that are in members at a time and can be reported
inline constexpr int kMarks = kThreadMarks + 1;  // the last is for a fault
inline constexpr std::size_t kMarkTextBytes = 104;
// The largest page of a machine that dtrun runs on: write access is set per page.
inline constexpr std::size_t kRecorderPageBytes = 64 << 10;

// One call. `number` is written last, so that a reader sees whole entries.
struct Entry {
  std::atomic<std::uint64_t> number{0};  // of the call on its communicator, from 1
  std::atomic<std::uint64_t> chain{0};   // digest of this call and all before it
  std::atomic<std::uint64_t> words[3];   // the Call
};

// The chain of a call with a number divisible by kCheckpointEvery: hosts compare these while calls go on.
struct Checkpoint {
  std::atomic<std::uint64_t> number{0};  // written last
  std::atomic<std::uint64_t> chain{0};
  std::atomic<std::uint64_t> seal{0};  // digest of both: shows that it was overwritten
};

// The messages with one peer and tag in one direction (messages.h).
struct MessageRow {
  std::atomic<std::uint64_t> key{0};  // 0: free
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> first{0};
  // Of message n in n % kMessageContents: its type, above 56 bits for its count.
  std::atomic<std::uint64_t> contents[kMessageContents] = {};
  std::atomic<std::uint64_t> seal{0};   // digest of these, written last; 0: they are changing
  std::atomic<std::uint64_t> ended{0};  // how many have ended; of a rank elsewhere unknown
};

// One communicator of one rank. Written by that rank; by the agent if the rank is on another host.
struct alignas(64) Ring {
  std::atomic<std::uint64_t> communicator{0};  // digest of its name; 0: free
  std::atomic<std::uint64_t> started{0};       // number of the last call
  std::atomic<std::uint64_t> ended{0};         // of the last that is known to have ended
  std::atomic<bool> moving{false};             // of a rank elsewhere: it calls on, both are out of date
  std::atomic<std::uint64_t> identity{0};      // ring.h, IdentityOf; stays while the ring is free
  std::int32_t rank = -1;                      // in the communicator
  std::int32_t size = 0;
  char name[kRingNameBytes] = {};
  char device[kDeviceNameBytes] = {};  // the name of its devices, before the first call on one
  Entry entries[kEntries];
  Checkpoint checkpoints[kCheckpoints];
  MessageRow messages[kMessageRows];
  std::atomic<std::int64_t> others_under_way{0};  // messages that have no row
  std::atomic<bool> any_without_row{false};       // one of them was received from any rank
  std::atomic<std::int64_t> asked{0};  // when a call was last asked for and not done, ns of the coarse clock
};

inline constexpr std::uint8_t kByThread = 1, kByMainThread = 2;
// A thread of a rank that calls plugins (member_mark.h). Written by that thread; a process that ends by
// `exit` writes `retired` of the first, and its HangWatch `watched` and `left_ms`.
struct alignas(64) MemberMark {
  std::atomic<std::uint8_t> taken{0};  // kByThread, or kByMainThread of the process
  std::atomic<std::uint8_t> retired{0};
  std::atomic<std::uint16_t> left_ms{
      0};  // of the limit of the member that `watched` counts; 0: it has passed
  std::atomic<std::uint32_t> watched{0};  // `entered`, when HangWatch last looked
  std::atomic<std::int32_t> depth{0};     // members that it is in, nested
  std::atomic<std::uint32_t> entered{0};  // how many it has entered
  std::atomic<std::int64_t> limit{0};     // by when it should be back, in ns after it entered; 0: no limit
  char text[kMarkTextBytes] = {};         // the one entered last; may be half written
};

// A difference, for all ranks to read. Written by the agent, before the alarm.
struct Finding {
  std::atomic<std::uint64_t> communicator{0};
  std::int32_t first = -1;  // the world ranks that differ
  std::int32_t second = -1;
  std::int32_t between_hosts = 0;
  char text[460] = {};
};

// Written by the agent.
struct alignas(64) RecorderHead {
  std::uint32_t version = kRecorderVersion;
  std::atomic<std::uint32_t> alarm{0};  // 1 once there is a finding; ranks sleep on it
  Finding finding;
};

constexpr std::size_t WholePages(std::size_t bytes) {
  return (bytes + kRecorderPageBytes - 1) / kRecorderPageBytes * kRecorderPageBytes;
}
inline constexpr std::size_t kRecorderHeadBytes = WholePages(sizeof(RecorderHead));
// Behind the head: the pages of each rank of the world, kRings rings and kMarks marks.
inline constexpr std::size_t kRankPagesBytes =
    WholePages(kRings * sizeof(Ring) + kMarks * sizeof(MemberMark));
constexpr std::size_t RecorderBytes(int ranks) {
  return kRecorderHeadBytes + static_cast<std::size_t>(ranks) * kRankPagesBytes;
}

// A mapped recorder memory. The number of ranks comes from its reader, not from the memory.
struct RecorderMemory {
  RecorderHead* head = nullptr;
  int ranks = 0;  // of the world

  std::byte* PagesOf(int rank) const {
    return reinterpret_cast<std::byte*>(head) + kRecorderHeadBytes +
           static_cast<std::size_t>(rank) * kRankPagesBytes;
  }
  MemberMark* MarksOf(int rank) const {
    return reinterpret_cast<MemberMark*>(PagesOf(rank) + kRings * sizeof(Ring));
  }
  std::span<Ring> RingsOf(int rank) const { return {reinterpret_cast<Ring*>(PagesOf(rank)), kRings}; }
};

}  // namespace dtrun::contract

// The agent's side of the flight recorder: compares the calls of the ranks.
//
// It checks every call, even one that ended long ago: the digests of all calls up to one number agree or
// differ. Invalid pages are attributed only to their own rank, and only if they stay invalid, because a read
// may hit the middle of a change. Owned by the agent; runs on its loop thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/contract/mapping.h"
#include "core/contract/ring.h"

namespace dtrun::contract {

struct Difference {
  std::uint64_t communicator = 0;
  int first = -1;  // ranks of the world
  int second = -1;
  std::string text;
  bool exact = false;  // the text names the very first call that differs
  bool between_hosts = false;
  void Fields(auto& io) {
    io("communicator", communicator);
    io("first", first);
    io("second", second);
    io("text", text);
    io("exact", exact);
    io("between_hosts", between_hosts);
  }
};

// Pages of a rank that its calls cannot have produced.
struct Damage {
  int rank = -1;  // of the world
  std::string text;
};

// Writes it into a recorder memory and wakes the ranks. Once per recorder memory.
void RaiseAlarm(const RecorderMemory& recorder_memory, const Difference& difference);

class Checker {
 public:
  explicit Checker(const RecorderMemory& recorder_memory)
      : recorder_memory_(recorder_memory), damaged_(static_cast<std::size_t>(recorder_memory.ranks)) {}

  // Compares every rank once with the first one of its communicator. Does not know about hosts.
  std::optional<Difference> Check();
  // Ranks that the last Check left out for the first time: their calls are not compared any more.
  std::vector<Damage> TakeDamage();

  // The last calls of world rank `rank`, oldest first: readable text, for after a failure.
  std::string History(int rank) const;

 private:
  struct Member {
    int world_rank;
    const Ring* ring;
    Heading heading;
    // Whether the ring is still that communicator's: its rank may have turned it into another one's, with
    // calls that differ from what the heading says.
    bool current() const { return ring->identity.load(std::memory_order_acquire) == heading.identity; }
  };
  struct Damaged {
    const char* why = nullptr;  // in this call check
    int checks = 0;             // consecutive checks that found damage
    bool left_out = false;
  };

  std::optional<Difference> CompareAll();
  // Compares the sends of every member with the receives of its peers.
  static std::optional<Difference> CompareMessages(const std::vector<Member>& members);
  // The open communicators of a rank; empty if its pages are invalid.
  std::vector<Member> MembersOf(int rank);
  std::optional<Difference> Compare(const Member& first, const Member& second);
  // Whether one of them is invalid in itself.
  bool EitherDamaged(const Member& first, const Member& second);

  const RecorderMemory recorder_memory_;
  std::vector<Damaged> damaged_;  // by rank of the world
  std::vector<Damage> news_;
};

}  // namespace dtrun::contract

// The agent's side of the flight recorder: compares what the ranks call.
//
// Every call is checked, also those that are long over: the digests of all calls up to one
// number agree or they do not. Pages that make no sense accuse nobody but the rank whose they are,
// and only when they stay so: a reader may come in the middle of a change. Owned by the agent; its
// loop thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/contract/heading.h"
#include "core/contract/mapping.h"

namespace dtrun::contract {

struct Difference {
  std::uint64_t communicator = 0;
  int first = -1;  // ranks of the world
  int second = -1;
  std::string text;
  bool exact = false;  // the text names the very first call that differs
  bool between_hosts = false;
};

// Pages of a rank that its calls cannot have made.
struct Damage {
  int rank = -1;  // of the world
  std::string text;
};

// Writes it into a recorder memory and wakes the ranks. Once for a recorder memory.
void RaiseAlarm(const RecorderMemory& recorder_memory, const Difference& difference);

class Checker {
 public:
  explicit Checker(const RecorderMemory& recorder_memory)
      : recorder_memory_(recorder_memory), damaged_(static_cast<std::size_t>(recorder_memory.ranks)) {}

  // Compares once, every rank with the first one of its communicator. Knows nothing of hosts.
  std::optional<Difference> Check();
  // Ranks that the last call check left out for the first time: what they call is not compared any more.
  std::vector<Damage> TakeDamage();

  // What rank `rank` of the world called last, oldest first: a page for people, for after a failure.
  std::string History(int rank) const;

 private:
  struct Member {
    int world_rank;
    const Ring* ring;
    Heading heading;
  };
  struct Damaged {
    const char* why = nullptr;  // in this call check
    int checks = 0;             // one after the other that found damage
    bool left_out = false;
  };

  std::optional<Difference> CompareAll();
  // What every member sends with what its peers receive.
  static std::optional<Difference> CompareMessages(const std::vector<Member>& members);
  // What a rank has open; nothing when its pages make no sense.
  std::vector<Member> MembersOf(int rank);
  std::optional<Difference> Compare(const Member& first, const Member& second);
  // Whether one of them does not make sense in itself.
  bool EitherDamaged(const Member& first, const Member& second);

  const RecorderMemory recorder_memory_;
  std::vector<Damaged> damaged_;  // by rank of the world
  std::vector<Damage> news_;
};

}  // namespace dtrun::contract

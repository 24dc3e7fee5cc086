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

#include "core/comm/recorder/heading.h"
#include "core/comm/recorder/mapping.h"

namespace dtrun::comm {

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

// Writes it into a book and wakes the ranks. Once for a book.
void Ring(const Book& book, const Difference& difference);

class Auditor {
 public:
  explicit Auditor(const Book& book) : book_(book), damaged_(static_cast<std::size_t>(book.ranks)) {}

  // Compares once, every rank with the first one of its communicator. Knows nothing of hosts.
  std::optional<Difference> Audit();
  // Ranks that the last audit left out for the first time: what they call is not compared any more.
  std::vector<Damage> TakeDamage();

  // What rank `rank` of the world called last, oldest first: a page for people, for after a failure.
  std::string History(int rank) const;

 private:
  struct Member {
    int world_rank;
    const Journal* journal;
    Heading heading;
  };
  struct Damaged {
    const char* why = nullptr;  // in this audit
    int audits = 0;             // one after the other that found damage
    bool left_out = false;
  };

  std::optional<Difference> CompareAll();
  // What a rank has open; nothing when its pages make no sense.
  std::vector<Member> MembersOf(int rank);
  std::optional<Difference> Compare(const Member& first, const Member& second);
  // Whether one of them does not make sense in itself.
  bool EitherDamaged(const Member& first, const Member& second);

  const Book book_;
  std::vector<Damaged> damaged_;  // by rank of the world
  std::vector<Damage> news_;
};

}  // namespace dtrun::comm

// The agent's side of the flight recorder: compares what the ranks call.
//
// Every call is checked, also those that are long over: the digests of all calls up to one
// number agree or they do not. Owned by the agent; its loop thread.
#pragma once

#include <optional>
#include <string>

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

// Writes it into a book and wakes the ranks. Once for a book.
void Ring(BookHead* book, const Difference& difference);

class Auditor {
 public:
  explicit Auditor(BookHead* book) : book_(book) {}

  // Compares once, every rank with the first one of its communicator. Knows nothing of hosts.
  std::optional<Difference> Audit() const;

  // What rank `rank` of the world called last, oldest first: a page for people, for after a failure.
  std::string History(int rank) const;

 private:
  struct Member {
    int world_rank;
    const Journal* journal;
  };

  static std::optional<Difference> Compare(const Member& first, const Member& second);

  BookHead* const book_;
};

}  // namespace dtrun::comm

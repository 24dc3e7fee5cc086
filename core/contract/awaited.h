// Whom a rank waits for, and which communicators it is a member of: what turns places of many ranks into
// "ranks 0, 2 wait for rank 1".
//
// Values; any thread. Each host tells them of its own ranks by communicator; the root, which has the members
// of all hosts, makes ranks of the world of them (verdict/awaiting.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/wire/limits.h"

namespace dtrun::contract {

struct Awaited {
  std::uint64_t communicator = 0;  // its id in the flight recorder; 0: `ranks` are of the world
  std::uint64_t number = 0;        // of the collective: not those that have called it; 0: a message
  // Of a communicator: empty means all others. Of the world: empty means none, or with `either` any other.
  std::vector<int> ranks = {};
  bool either = false;  // it waits for one of them, and which one is not known

  void Fields(auto& io) {
    constexpr wire::Between kAny{std::uint64_t{0}, ~std::uint64_t{0}};
    io("communicator", communicator, kAny, wire::kMayMiss);
    io("number", number, kAny, wire::kMayMiss);
    io("ranks", ranks, wire::kMostEntries, wire::kAnyRank, wire::kMayMiss);
    io("either", either, wire::kMayMiss);
  }
  friend bool operator==(const Awaited&, const Awaited&) = default;
  friend auto operator<=>(const Awaited&, const Awaited&) = default;
};

struct Membership {
  std::uint64_t communicator = 0;
  int rank = 0;               // in it
  std::uint64_t started = 0;  // number of its last collective there

  void Fields(auto& io) {
    io("communicator", communicator);
    io("rank", rank, wire::kAnyRank);
    io("started", started);
  }
  friend bool operator==(const Membership&, const Membership&) = default;
};

}  // namespace dtrun::contract

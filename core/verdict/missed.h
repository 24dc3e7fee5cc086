// Whom a rank missed, by what it reported: in which call, and among which ranks.
//
// Reports come through the store, in the words of libdtrun and of backends. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// A call in which a rank waited until a limit, its own or that of another one.
struct MissedCall {
  int peer = -1;             // for whom, as a rank of the world
  std::string message;       // "recv from", "send to"; empty: it was a collective
  std::string communicator;  // its name
};

// The first one that it reported, but for messages from anyone.
std::optional<MissedCall> MissedCallOf(const RankFacts& rank);

// The members of the communicators in which the rank, and in turn those that it missed, have missed somebody.
// Empty: any rank may be the one. `first`: index into ranks.
std::set<int> MembersMissed(const Facts& facts, std::size_t first);

// Whether the process has one of `members`, or these are not known.
bool IsAmong(const std::set<int>& members, const RankFacts& process);

}  // namespace dtrun::verdict

// Which peer a rank waited for in vain, in which call and communicator, according to its reports.
//
// Parses the report texts of libdtrun and of backends, which arrive through the store. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// A call that waited until a timeout, its own or another rank's.
struct MissedCall {
  int peer = -1;             // the missed peer, as a rank of the world
  std::string message;       // "recv from", "send to"; empty: a collective
  std::string communicator;  // name
};

// The first missed call that the rank reported. Ignores receives from any rank.
std::optional<MissedCall> MissedCallOf(const RankFacts& rank);

// The members of the communicators with a missed call, starting at rank `first` and following the missed
// peers. Empty: any rank may be the missing one. `first`: index into ranks.
std::set<int> MembersMissed(const Facts& facts, std::size_t first);

// Whether the process holds one of `members`. True if `members` is empty.
bool IsAmong(const std::set<int>& members, const RankFacts& process);

}  // namespace dtrun::verdict

// Detects ranks that waited for each other in vain, where no rank is more to blame than the others.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

// Whether every rank that `first` may have missed waited for others until a timeout, at different places:
// their calls do not match, and no evidence shows which ones are wrong. `first`: index of the rank that
// failed first.
bool WaitedApart(const Facts& facts, std::size_t first);

// A cycle of ranks, in order, in which each waited for the next and the last for the first, according to
// their reports: all in a recv, all in a send, or in collectives of different communicators. This is a
// deadlock whatever the timing. Empty: none.
std::vector<int> WaitedForEachOther(const Facts& facts, std::size_t first);

// Whether all ranks wait in collectives, but not in the same one, so that none can complete. Two calls of the
// same collective may match wherever they are in the program; so may a send and a recv.
bool WaitInDifferentCollectives(const std::vector<RankDoing>& ranks);
// The next step where all ranks wait and one of them in a receive; else `otherwise`.
std::string PlacesHint(const std::vector<RankDoing>& places, const char* otherwise);

// Adds what the flight recorders know to the places of all ranks: a program that is not Python waits in the
// call that is under way, or is elsewhere; one that naps while a call is under way waits for it; a place in
// Python gets the call's number; who waits for whom is resolved (awaiting.h). Not for verdicts of ranks that
// failed, which have the ranks' reports.
void AddCalls(std::vector<RankDoing>* ranks);

// The first collective that ranks of a group have called differently, by torch's flight recorder: "collective
// #4 on 'default_pg' is not the same on all ranks: rank 0 calls all_reduce (float32 [8]), rank 1 ...". Empty:
// none.
std::string DifferingCallsText(const std::vector<RankDoing>& places);

// Which ranks wait for which, directly or not: "ranks 0, 2 wait for rank 1". Empty if the places do not make
// that clear. `exited`: ranks that have ended while others run. `lasting`: they have been there for seconds,
// so that a circle of calls without a number is none of a moment.
std::string WhoWaitsText(const std::vector<RankDoing>& places, const std::vector<int>& exited = {},
                         bool lasting = false);

// "ranks 1, 2 have exited"; empty: none has.
std::string ExitedText(const std::vector<int>& exited);

// The ranks that waited for a file lock that rank `index` held.
std::vector<int> LockedOutBy(const Facts& facts, std::size_t index);

// A call that waited until a timeout, its own or another rank's.
struct MissedCall {
  int peer = -1;             // the missed peer, as a rank of the world
  std::string message;       // "recv from", "send to"; empty: a collective
  std::string communicator;  // name
  std::string what;          // of a message: "float32 x 8, tag 0"; empty: not known
};

// The first missed call that the rank reported. Ignores receives from any rank.
std::optional<MissedCall> MissedCallOf(const RankFacts& rank);

// "rank 0 sends (float32 x 4, tag 0), rank 1 receives (float32 x 8, tag 0)": `rank` and its peer each waited
// for the other's message until a timeout, and the messages do not match. Empty: that is not so.
std::string DifferingMessageText(const Facts& facts, const RankFacts& rank);

// The members of the communicators with a missed call, starting at rank `first` and following the missed
// peers. Empty: any rank may be the missing one. `first`: index into ranks.
std::set<int> MembersMissed(const Facts& facts, std::size_t first);

// Whether the process holds one of `members`. True if `members` is empty.
bool IsAmong(const std::set<int>& members, const RankFacts& process);

}  // namespace dtrun::verdict

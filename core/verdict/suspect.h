// Which rank is to blame when the first failure was a missing peer.
//
// An accusation needs evidence of its own: an error that the suspect printed, an end of its own, or a place
// where nobody waits for others while the others do. Without any of these nobody is suspected. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

struct Suspicion {
  enum class Kind : std::uint8_t {
    kNone,
    kErred,       // it printed an error of its own before the first one failed, and was slow to end
    kStoodStill,  // it was elsewhere while the others waited
    kDiffers,     // it waited in another call than all others
    kLeft,        // it had ended with code 0
    kOverrode,    // it looked for the others elsewhere, or as another rank, than dtrun had told it
  };
  Kind kind = Kind::kNone;
  std::vector<std::size_t> indices = {};  // into ranks; not empty unless kNone
};

// `first`: index of the rank that failed first.
Suspicion Suspect(const Facts& facts, std::size_t first);

// Which ranks have changed the variables by which they find each other, when `first` did not find the others.
// When all have changed them alike, none is: they may have met.
Suspicion SuspectOfJoining(const Facts& facts, std::size_t first);

// Whether it failed to join the others, as far as it says.
bool FailedToJoin(const RankFacts& rank);

// Whom the others wait for in a job where every rank stands still and none has failed.
Suspicion SuspectOfStall(const Facts& facts);

// Whether it lost a connection, and nothing says that it was one to another rank: others are no suspects
// then.
bool FailedOutside(const RankFacts& rank);

// Whether the lines say that a peer was lost or did not come, and no more.
bool SaysPeerIsMissing(const std::vector<std::string>& lines);

// Whether the ranks' calls do not match, as they say.
bool SaysCallsDiffer(const std::vector<std::string>& lines);

// How they differ: "rank 0 calls allreduce (float32 x 4, sum), rank 1 calls broadcast (...)", as the recorder
// found or the rank printed when it failed for that. Empty when neither did.
std::string DifferenceOf(const Facts& facts, const RankFacts& rank);

// Whether they also say that it was waited for until a limit.
bool SaysTimeOut(const std::vector<std::string>& lines);

// Where every rank was that is known of: in the call that it gave up, by its traceback, or where it was seen.
std::vector<RankDoing> PlacesOf(const Facts& facts);

// The ranks whose output ends in the same error, numbers aside, as that of the rank `index`, in order.
// Without an error that is known as one: those that ended by themselves with the same code and the same last
// line.
std::vector<int> FailedAlike(const Facts& facts, std::size_t index);

// Ranks at the same place together: "ranks 0, 2 in all_reduce at train.py:8; rank 1 in time.sleep at
// train.py:6". `but`: indices to leave out.
std::string PlacesText(const std::vector<RankDoing>& ranks, const std::vector<int>& but = {});

}  // namespace dtrun::verdict

// Finds the rank to blame when the first failure was a missing peer.
//
// A suspicion needs evidence: an error that the suspect printed, its own exit, or a place where it did not
// wait for others while the others did. Without evidence no rank is suspected. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

struct Suspicion {
  enum class Kind : std::uint8_t {
    kNone,
    kAborted,     // it aborted the communicator in which the first one failed
    kErred,       // it printed an error of its own before the first failure, and was slow to exit
    kStoodStill,  // it was elsewhere while the others waited
    kDiffers,     // it waited in a different call than all others
    kLeft,        // it had already exited with code 0
    kClosed,      // it lived and was elsewhere when the others lost their connections
    kStuck,       // a call of a plugin did not return by its time, while the others' did
    kOverrode,    // it looked for the others at another address, or as another rank, than dtrun had set
  };
  Kind kind = Kind::kNone;
  std::vector<std::size_t> indices = {};  // into ranks; not empty unless kNone
};

// `first`: index of the rank that failed first.
Suspicion Suspect(const Facts& facts, std::size_t first);

// The ranks that changed their rendezvous variables, when `first` did not find the others. None if all ranks
// made the same change: they may have met.
Suspicion SuspectOfJoining(const Facts& facts, std::size_t first);

// The rank, if any, that printed another error before `first` printed its own, and was slower to exit.
std::optional<std::size_t> ErredBefore(const Facts& facts, std::size_t first);

// Whether its output says that it failed to join the others.
bool FailedToJoin(const RankFacts& rank);

// The ranks that the others wait for when all ranks stand still and none has failed.
Suspicion SuspectOfStall(const Facts& facts);

// The ranks that a plugin's member keeps beyond its time.
Suspicion SuspectOfPlugin(const Facts& facts);

// Whether it lost a connection without evidence that the peer was a rank. Other ranks are then not suspected.
bool FailedOutside(const RankFacts& rank);

// Whether a rank reports that it waited for a peer until a timeout.
bool SaysItWaited(const PeerReport& report);

// Whether the lines report only that a peer was lost or did not join.
bool SaysPeerIsMissing(const std::vector<std::string>& lines);

// Whether the lines report that the ranks' calls do not match.
bool SaysCallsDiffer(const std::vector<std::string>& lines);

// Whether the lines also report a timeout.
bool SaysTimeOut(const std::vector<std::string>& lines);

// The last known place of each rank: the call that failed, by its traceback, or where it was seen.
std::vector<RankDoing> PlacesOf(const Facts& facts);

// The ranks, in order, with the same final error in their output as rank `index`, ignoring numbers. If that
// error is not a known one: the ranks that ended by themselves with the same code and the same last line.
std::vector<int> FailedAlike(const Facts& facts, std::size_t index);

// Groups ranks by place: "ranks 0, 2 in all_reduce at train.py:8; rank 1 in time.sleep at train.py:6". `but`:
// ranks to leave out. `verb`: before the place, for one rank and for several: "was ", "were ".
std::string PlacesText(const std::vector<RankDoing>& ranks, const std::vector<int>& but = {},
                       const std::pair<std::string_view, std::string_view>& verb = {});

}  // namespace dtrun::verdict

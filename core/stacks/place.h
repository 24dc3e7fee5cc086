// What a Python thread does, in the words of its user: the user's own line, what is called there, and whether
// that waits for other ranks.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stacks/frame.h"

namespace dtrun::stacks {

// How sure it is that a rank stands where it does because others have not come.
enum class Stand : std::uint8_t {
  kUnknown,
  kWaits,      // it is in a collective, in a rendezvous, or in a wait for one
  kMayWait,    // where both a rank that waits for others and one that works can be
  kElsewhere,  // at a place where nobody waits for other ranks
};

struct Place {
  Stand stand = Stand::kUnknown;
  bool trains = false;  // a step of training is under way: backward, an optimizer, a compiled function
  bool joins = false;   // ranks find each other, at the start
  std::string what;     // "time.sleep", "all_reduce"; empty: the line itself
  std::string where;    // "train.py:40"
  std::string line;     // the source there, without indentation; empty: not known
};

// A line of a file of the process, from 1; empty when it cannot be had.
using Source = std::function<std::string(const std::string& file, int line)>;

// `frames`: innermost first, not empty.
Place PlaceOf(const std::vector<Frame>& frames, const Source& source);

// A name made for comparison, without what it belongs to: all_reduce, Allreduce and dist.allReduce are one.
std::string Plain(std::string_view name);

// "File "train.py", line 40, in main", one line each, as Python prints a stack that the innermost frame ends.
std::string FramesText(const std::vector<Frame>& frames);

}  // namespace dtrun::stacks

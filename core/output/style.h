// How ranks' output is shown to the user.
//
// A value, created from a config's [output] table (core/plan/output.h); any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::output {

// Prefix of each line: kAuto is the rank if the world has more than one.
enum class Prefix { kAuto, kRank, kHost, kNone };

enum class ColourWhen { kAuto, kAlways, kNever };

struct Style {
  Prefix prefix = Prefix::kAuto;
  bool timestamps = false;
  bool fold = false;  // merges equal lines of several ranks
  ColourWhen colour = ColourWhen::kAuto;
  std::optional<std::vector<int>> ranks = {};  // whose lines are shown, ascending; unset: all
  // At least, of a progress bar that is not on a terminal: each of its states that is shown is a line.
  std::chrono::milliseconds between_states = std::chrono::seconds(10);

  bool Shows(int rank) const;
};

// Whether a stream gets colours. With kAuto a terminal does, unless NO_COLOR is set (https://no-color.org) or
// TERM is "dumb".
bool WantsColour(ColourWhen when, bool terminal);

}  // namespace dtrun::output

// How ranks' output is shown to the user, and the prefix of a rank's line: the time and the rank.
//
// A value, created from a config's [output] table (core/plan/output.h); any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
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
  std::optional<std::vector<int>> ranks = {};  // ranks with lines that are shown, ascending; unset: all
  // At least, of a progress bar that is not on a terminal: each of its states that is shown is a line.
  std::chrono::milliseconds between_states = std::chrono::seconds(10);

  bool Shows(int rank) const;
};

// Whether a stream gets colours. With kAuto a terminal does, unless NO_COLOR is set (https://no-color.org) or
// TERM is "dumb".
bool WantsColour(ColourWhen when, bool terminal);

// The origin of a rank's lines.
struct Source {
  int rank = 0;
  int world_size = 1;
  std::string host = {};
};

// "[3] ", padded to the same width for all ranks; "[3 node1] " with Prefix::kHost. Empty if there is no
// prefix.
std::string LabelOf(const Source& source, Prefix prefix);

// The same for several ranks: "[0-3,7] ". `ranks`: ascending.
std::string LabelOf(const std::vector<int>& ranks, int world_size, Prefix prefix);

// `label` in the colour of `rank`, different from its neighbours' colours. An empty label stays empty.
std::string Coloured(std::string_view label, int rank);

// The current local time: "2026-11-23 16:20:01.123 ".
std::string Timestamp();

}  // namespace dtrun::output

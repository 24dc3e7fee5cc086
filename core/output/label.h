// The prefix of a rank's line: the time and the rank.
//
// Values and functions; pure except for Timestamp. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/output/style.h"

namespace dtrun::output {

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

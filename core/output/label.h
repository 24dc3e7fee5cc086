// What stands before a line of ranks: the time, and who printed it.
//
// Values and pure functions but for the clock; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/output/style.h"

namespace dtrun::output {

// Where a rank's lines come from.
struct Source {
  int rank = 0;
  int world_size = 1;
  std::string host = {};
};

// "[3] ", as wide for all ranks of a world; "[3 node1] " with Prefix::kHost. Empty when there is none.
std::string LabelOf(const Source& source, Prefix prefix);

// The same of several ranks: "[0-3,7] ". `ranks`: ascending.
std::string LabelOf(const std::vector<int>& ranks, int world_size, Prefix prefix);

// `label` in the colour of `rank`, which neighbours do not have; as it is when it is empty.
std::string Coloured(std::string_view label, int rank);

// "2026-11-23 16:20:01.123 ", now, in local time.
std::string Timestamp();

}  // namespace dtrun::output

// What a text says went wrong, as far as it is known: the table of known failures, applied.
//
// Pure; any thread. The time is linear in the text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dtrun/known/failure.hpp"

namespace dtrun::failures {

// A known failure as the text has it: its last occurrence there, because a process dies of what
// it prints last.
struct Finding {
  const known::KnownFailure* failure = nullptr;  // in the table, which lives for ever
  std::string what;                              // with what the text says of ranks and addresses
  std::string fix;
  std::string line;             // the text itself, cut to 400 bytes
  std::size_t line_number = 0;  // from 1; 0: not known
  std::size_t lines_after = 0;
  std::size_t count = 0;  // how often it stands there
};

// In the order of the lines where they stand last, every failure once.
std::vector<Finding> FindFailures(std::string_view text);

// What to tell first: the last cause; the last symptom when there is no cause. Null for none.
const Finding* Foremost(const std::vector<Finding>& findings);

// Every failure that is known, family by family.
const std::vector<const known::KnownFailure*>& AllFailures();

}  // namespace dtrun::failures

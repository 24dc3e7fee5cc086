// What a text says went wrong, as far as it is known: the table of known failures, applied.
//
// Any thread; the process's table is read at the first call with a text. The time is linear in the text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/failures/pattern.h"
#include "core/failures/table.h"

namespace dtrun::failures {

// A known failure as the text has it: its last occurrence there, because a process dies of what
// it prints last.
struct Finding {
  std::shared_ptr<const KnownFailure> failure;
  std::string what;  // with what the text says of ranks and addresses
  std::string fix;
  std::string line;             // the text itself, cut to 400 bytes
  std::size_t line_number = 0;  // from 1; 0: not known
  std::size_t lines_after = 0;
  std::size_t count = 0;  // how often it stands there
};

// In the order of the lines where they stand last, every failure once. `facts`: what else is known, for the
// sentences.
std::vector<Finding> FindFailures(std::string_view text, const Captures& facts = {});
std::vector<Finding> FindFailures(const Table& table, std::string_view text, const Captures& facts = {});

// A known failure of which `words` are a part only: "Connection reset by peer" of the whole line that a
// library prints, in any case. In the order of the table, every failure once; none for fewer than 4 bytes.
struct Mention {
  std::shared_ptr<const KnownFailure> failure;
  std::string text;  // the first of its texts with these words
};
std::vector<Mention> FindMentions(std::string_view words);

// What to tell first: the last cause; else the last symptom; else the last report. Null for none.
const Finding* Foremost(const std::vector<Finding>& findings);

}  // namespace dtrun::failures

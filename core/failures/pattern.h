// The grammar of known failures: matches patterns in texts and fills sentences with the captures.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrun::failures {

using Captures = std::vector<std::pair<std::string, std::string>>;  // name, text

// The literal that every pattern begins with. A match is tried only where it occurs.
std::string_view Anchor(std::string_view pattern);

// The error in a pattern: "begins with less than 5 bytes of plain text"; empty: none.
std::string ProblemOf(std::string_view pattern);

// Matches `pattern` at the beginning of `text`, within its first 4 KiB, and returns the captures. A pattern
// is literal text except for:
//   {name}     up to the next literal in this line, or one word if none follows. A capture never contains the
//              pattern's own anchor: the match then begins there
//   {name...}  the rest of the line
//   \n         the rest matches somewhere in a later line
std::optional<Captures> Read(std::string_view pattern, std::string_view text);

// Replaces each {name} in `text` by its capture. A part in [brackets] is left out if it names a missing
// capture. The brackets are always removed.
std::string Fill(std::string_view text, const Captures& captures);

}  // namespace dtrun::failures

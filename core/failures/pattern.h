// The grammar of known failures: how a text is read, and how a sentence is filled with what it says.
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

// Every pattern begins with a literal: where that stands, the rest is tried.
std::string_view Anchor(std::string_view pattern);

// What is wrong with a pattern: "begins with less than 5 bytes of plain text"; empty: nothing.
std::string ProblemOf(std::string_view pattern);

// Reads `pattern` at the beginning of `text`, of which 4 KiB are looked at: what its captures
// hold, or nothing. A pattern is literal text but for
//   {name}     what stands before the next literal of this line; when none follows, one word. Never the
//              pattern's own beginning again: the text then begins there
//   {name...}  the rest of the line
//   \n         what follows begins somewhere in a later line
std::optional<Captures> Read(std::string_view pattern, std::string_view text);

// `text` with each {name} replaced by its capture. What stands in [brackets] is left out when
// it names a capture that is missing, and so are the brackets.
std::string Fill(std::string_view text, const Captures& captures);

}  // namespace dtrun::failures

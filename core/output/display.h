// Text as a terminal shows it: characters, columns, escape sequences.
//
// Pure functions; any thread. Bytes that are not UTF-8 count as one column each. No locale
// is consulted: output is UTF-8 whatever the user's LC_CTYPE says.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrun::output {

// The largest size of at most `limit` that does not end inside a UTF-8 character; `limit`
// itself when the bytes there are no UTF-8, and text.size() when that is not larger.
std::size_t CutPoint(std::string_view text, std::size_t limit);

// `text` without the first bytes of a character whose other bytes have not come yet.
std::string_view WholeCharacters(std::string_view text);

// What fits into `columns`, for a line that is drawn over: control characters and escape
// sequences other than colours are left out, a tab is one space, colours end with a reset.
std::string FitColumns(std::string_view text, int columns);

// Appends `text` without the control sequences that would move the cursor or erase, and so
// damage lines of others; colours and everything else stay.
void AppendWithoutMoves(std::string_view text, std::string* out);

// Whether a terminal would show nothing but spaces.
bool Blank(std::string_view text);

}  // namespace dtrun::output

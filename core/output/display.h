// Text as a terminal shows it: characters, columns, escape sequences.
//
// Functions are pure, for any thread; a TamedLines belongs to one. Bytes that are not UTF-8 count as one
// column each. No locale is consulted: output is UTF-8 whatever the user's LC_CTYPE says.
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

// What may reach a terminal of a text that others wrote: characters, tabs, newlines, and colours
// (ESC [ numbers m, but for 8, which conceals). All other controls (C0, DEL, C1, those of writing
// direction) and all other escape sequences, with what they carry, are left out; a byte that is no
// UTF-8 is "?". A sequence without an end is left out up to the end of its line.
void AppendTamed(std::string_view text, std::string* out);

// The same for what dtrun quotes: colours also end with their line.
std::string Tamed(std::string_view text);

// The lines of one source among those of others on a terminal: what AppendTamed lets through. A colour
// that a line leaves open ends with it and is set again in the next line of this source. The text of a
// sequence (OSC and the like) that a piece of a long line leaves open is left out of the next piece too, and
// of the next line when it ends there.
class TamedLines {
 public:
  // `continues`: the text goes on in the line of the call before.
  void Append(std::string_view text, bool continues, std::string* out);

 private:
  std::string colours_;   // that are open, as sequences
  char without_end_ = 0;  // the type of a sequence whose text has not ended yet; 0: there is none
};

// What fits into `columns` of that, for a line that is drawn over: a tab is one space, newlines are
// left out, colours end with a reset.
std::string FitColumns(std::string_view text, int columns);

// Whether a terminal would show nothing but spaces.
bool Blank(std::string_view text);

}  // namespace dtrun::output

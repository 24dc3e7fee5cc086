// Text as a terminal shows it: characters, columns, escape sequences.
//
// Functions are pure; any thread. A TamedLines belongs to one thread. Each byte that is not valid UTF-8
// counts as one column. The locale is ignored: output is always UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::output {

// The largest size of at most `limit` that does not split a UTF-8 character. Returns `limit` if the bytes
// there are not UTF-8, and text.size() if that is not larger.
std::size_t CutPoint(std::string_view text, std::size_t limit);

// `text` without an incomplete UTF-8 character at its end.
std::string_view WholeCharacters(std::string_view text);

// Sanitises foreign text for a terminal. Keeps characters, tabs, newlines and colours (ESC [ numbers m,
// except 8, which conceals). Drops all other controls (C0, DEL, C1, writing direction) and all other escape
// sequences with their contents. Replaces each byte that is not UTF-8 by "?". Drops an unterminated sequence
// up to the end of its line.
void AppendTamed(std::string_view text, std::string* out);

// The same for text that dtrun quotes: colours also end with their line.
std::string Tamed(std::string_view text);

// The same for dtrun's own lines, which hold texts of files and of other hosts: without any colour, but for
// the lines that quote a rank, "    | ...".
std::string TamedMessage(std::string_view text);

// AppendTamed for one source among several on a terminal. A colour that a line leaves open is reset at its
// end and set again in the next line of this source. If a piece of a long line leaves a sequence (such as
// OSC) open, its text is also dropped from the next piece, and from the next line if it ends there.
class TamedLines {
 public:
  // `continues`: the text continues the line of the previous call.
  void Append(std::string_view text, bool continues, std::string* out);

 private:
  std::string colours_;   // open colours, as sequences
  char without_end_ = 0;  // the type of an unterminated sequence; 0: none
};

// The part of the tamed text that fits into `columns`, for a redrawn line: a tab becomes one space, newlines
// are dropped, colours end with a reset.
std::string FitColumns(std::string_view text, int columns);

// Whether a terminal would show only spaces.
bool Blank(std::string_view text);

// The last lines of a rank's output, for the verdict. Owned by a RankOutput; one thread. Memory is bounded to
// a few KiB, without allocations per line. A line over 2 KiB is cut, so that one line cannot displace the
// others.
class Tail {
 public:
  static constexpr std::size_t kBytes = 16 << 10;
  static constexpr std::size_t kLineBytes = 2 << 10;

  // REQUIRES: no newline in `line`
  void Append(std::string_view line);
  // Oldest first: at most `count` lines and kBytes of text.
  std::vector<std::string> Last(std::size_t count) const;

 private:
  std::string text_;  // each line followed by '\n'
};

}  // namespace dtrun::output

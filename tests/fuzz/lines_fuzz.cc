// Fuzzes LineAssembler. The first byte says how the rest is cut into reads; the lines must
// be those of a second, slow reading of the rules, whatever the cuts.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/output/display.h"
#include "core/output/output.h"
#include "tests/fuzz/target.h"

namespace lines_fuzz {

using dtrun::output::Blank;
using dtrun::output::CutPoint;
using dtrun::output::LineAssembler;
using Lines = std::vector<std::pair<std::string, bool>>;

void Require(bool holds) {
  if (!holds) std::abort();
}

// One pass over the whole text, a line at a time, with nothing kept between reads.
Lines Expected(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);

    const bool redrawn = line.find('\r') != line.npos;
    std::pair<std::string, bool> shown;
    while (true) {
      const std::size_t redraw = line.find('\r');
      std::string_view state = line.substr(0, redraw);
      bool continues = false;
      while (state.size() > LineAssembler::kLongestLine) {
        const std::size_t cut = CutPoint(state, LineAssembler::kLongestLine);
        lines.emplace_back(state.substr(0, cut), continues);
        continues = true;
        state.remove_prefix(cut);
      }
      const bool wipes = redraw != line.npos && Blank(state);
      if (!state.empty()) shown = {wipes ? "" : std::string(state), wipes ? false : continues};
      if (redraw == line.npos) break;
      line.remove_prefix(redraw + 1);
    }
    const bool unfinished = end == std::string_view::npos;
    if (unfinished && (shown.first.empty() || (redrawn && Blank(shown.first)))) continue;
    lines.push_back(std::move(shown));
  }
  return lines;
}

Lines Assembled(std::string_view text, std::size_t read_size) {
  Lines lines;
  LineAssembler assembler(
      [&](std::string_view line, bool continues) { lines.emplace_back(line, continues); });
  for (; !text.empty(); text.remove_prefix(std::min(read_size, text.size()))) {
    assembler.Feed(text.substr(0, read_size));
    Require(assembler.State().size() <= LineAssembler::kLongestLine);
  }
  assembler.Close();
  Require(assembler.State().empty());
  return lines;
}

DTRUN_FUZZ_TARGET(lines)(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // Inputs are short: bytes of 0x01 and 0x02 stand for long runs, so that long lines are met.
  constexpr std::size_t kLongEnough = 3 * LineAssembler::kLongestLine;
  std::string text;
  for (std::size_t i = 1; i < size; ++i) {
    if (data[i] == 1 && text.size() < kLongEnough) {
      text.append(LineAssembler::kLongestLine - 2, 'x');
    } else if (data[i] == 2 && text.size() < kLongEnough) {
      for (std::size_t at = 0; at < LineAssembler::kLongestLine / 4; ++at) text += "\xf0\x9f\x98\x80";
    } else {
      text += static_cast<char>(data[i]);
    }
  }
  const Lines expected = Expected(text);
  Require(Assembled(text, text.size() + 1) == expected);
  Require(Assembled(text, std::size_t{1} + data[0] * std::size_t{data[0]}) == expected);
  return 0;
}

}  // namespace lines_fuzz

#include "core/failures/pattern.h"

#include <algorithm>
#include <cstddef>

namespace dtrun::failures {
namespace {

constexpr std::size_t kShortestAnchor = 5;
constexpr std::size_t kWindow = 4096;  // maximum bytes that one match may span

std::size_t LineEnd(std::string_view text, std::size_t at) {
  return std::min(text.find('\n', at), text.size());
}

// The end of the word at `at`.
std::size_t WordEnd(std::string_view line, std::size_t at) {
  std::size_t end = std::min(line.find_first_of(" \t\r,;\"'`<>()[]", at), line.size());
  while (end > at && (line[end - 1] == '.' || line[end - 1] == ':')) --end;  // punctuation of the sentence
  return end;
}

}  // namespace

std::string_view Anchor(std::string_view pattern) { return pattern.substr(0, pattern.find_first_of("{\n")); }

std::string ProblemOf(std::string_view pattern) {
  if (Anchor(pattern).size() < kShortestAnchor)
    return "begins with less than 5 bytes of plain text; give more of what the library prints";
  // Two captures in a row, or an open one in the middle, would match anything.
  if (pattern.find("}{") != pattern.npos) return "has two {names} without text between them; write one";
  bool open = false;
  for (const char c : pattern) {
    if ((c == '{' && open) || (c == '}' && !open)) return "has a '{' or '}' too many";
    if (c == '{' || c == '}') open = c == '{';
  }
  return open ? "has a '{' without its '}'" : "";
}

std::optional<Captures> Read(std::string_view pattern, std::string_view text) {
  const std::string_view anchor = Anchor(pattern);
  text = text.substr(0, kWindow);
  if (text.substr(0, anchor.size()) != anchor) return std::nullopt;
  pattern.remove_prefix(anchor.size());
  std::size_t at = anchor.size();
  Captures captures;
  while (!pattern.empty()) {
    const bool next_line = pattern.front() == '\n';
    const std::size_t close = next_line ? 0 : pattern.find('}');
    std::string_view name = next_line ? "" : pattern.substr(1, close - 1);
    pattern.remove_prefix(close + 1);
    const std::string_view literal = Anchor(pattern);
    pattern.remove_prefix(literal.size());
    if (next_line) {
      const std::size_t end = LineEnd(text, at);
      const std::size_t found = end < text.size() ? text.find(literal, end + 1) : text.npos;
      if (found == text.npos) return std::nullopt;
      at = found + literal.size();
      continue;
    }
    const std::string_view line = text.substr(0, LineEnd(text, at));
    at = std::min(line.find_first_not_of(" \t", at), line.size());
    std::size_t found = line.size();
    if (name.size() > 3 && name.substr(name.size() - 3) == "...") {
      name.remove_suffix(3);
    } else {
      found = literal.empty() ? WordEnd(line, at) : line.find(literal, at);
    }
    if (found == line.npos || found == at) return std::nullopt;
    // The match begins later: "[Rank 2] NCCL watchdog thread terminated: [Rank 2] Watchdog caught".
    if (line.substr(at, found - at).find(anchor) != line.npos) return std::nullopt;
    captures.emplace_back(name, line.substr(at, found - at));
    at = found + literal.size();
  }
  return captures;
}

std::string Fill(std::string_view text, const Captures& captures) {
  std::string out;
  std::size_t bracket = std::string::npos;  // start of the open bracket in `out`
  bool missing = false;
  while (!text.empty()) {
    const char c = text.front();
    std::size_t taken = 1;
    if (c == '[') {
      bracket = out.size();
      missing = false;
    } else if (c == ']' && bracket != std::string::npos) {
      if (missing) out.resize(bracket);
      bracket = std::string::npos;
    } else if (c == '{') {
      taken = std::min(text.find('}'), text.size() - 1) + 1;
      const std::string_view name = text.substr(1, taken - 2);
      bool found = false;
      for (const auto& [key, value] : captures) {
        if (key != name || found) continue;
        out += value;
        found = true;
      }
      missing = missing || !found;
    } else {
      out += c;
    }
    text.remove_prefix(taken);
  }
  return out;
}

}  // namespace dtrun::failures

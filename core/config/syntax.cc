#include "core/config/syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/secrets.h"
#include "core/base/text.h"

namespace dtrun::config {
namespace {

constexpr std::size_t kLongest = 60;

// Counted from 1; empty beyond the last.
std::string_view LineOf(std::string_view text, int number) {
  const std::vector<std::string_view> lines = LinesOf(text);
  const auto index = static_cast<std::size_t>(number) - 1;
  return index < lines.size() ? lines[index] : std::string_view();
}

bool Says(const SyntaxError& error, std::string_view words) {
  return error.message.find(words) != error.message.npos;
}

// "command: [1]", a line of YAML.
std::string FromYaml(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view key = Trim(line.substr(0, colon)), value = Trim(line.substr(colon + 1));
  if (key.size() + value.size() > kLongest) return "dtrun reads TOML, not YAML; write key = value";
  return value.empty() ? fmt::format("dtrun reads TOML, not YAML; a table begins with [{}]", key)
                       : fmt::format("dtrun reads TOML, not YAML; write {} = {}", key, MaskValue(key, value));
}

// The bare word behind '=' or inside a list; empty when it is no word.
std::string_view BareWord(std::string_view line, int column) {
  const auto is_word = [](char c) { return IsLetterOrDigit(c) || std::strchr("_./:-${}~", c) != nullptr; };
  auto at = std::min(line.size(), static_cast<std::size_t>(std::max(column - 1, 0)));
  while (at > 0 && is_word(line[at - 1])) --at;
  std::size_t end = at;
  while (end < line.size() && is_word(line[end])) ++end;
  return line.substr(at, end - at);
}

// The bare words that are the whole value of a key, as in `command = python3 train.py`; else the one word.
std::string_view BareText(std::string_view line, int column) {
  const std::size_t equals = line.find('=');
  if (equals != line.npos) {
    const std::string_view value = Trim(line.substr(equals + 1));
    if (value.size() <= kLongest && value.find_first_of("[]{},#\"'\\") == value.npos) return value;
  }
  return BareWord(line, column);
}

// What to show of it; the line may name a secret.
std::string WordShown(std::string_view word, std::string_view line) {
  return MaskText(line).find(word) == std::string::npos ? std::string(kSecret) : MaskText(word);
}

// The line above `line` in which the key or table `name` was given first; 0: not found.
int FirstOf(const std::string& name, std::string_view text, int line) {
  int found = 0;
  bool in_a_table = false;
  int i = 0;
  for (const std::string_view raw : LinesOf(text)) {
    if (++i >= line) break;
    const std::string_view one = Trim(raw);
    const bool header = one.starts_with('[') && one.ends_with(']');
    if (header && !in_a_table) found = 0;  // another table has keys of its own
    const std::size_t equals = one.find('=');
    const bool key = equals != one.npos && Trim(one.substr(0, equals)) == name;
    const bool table = header && (one == "[" + name + "]" || one.ends_with("." + name + "]"));
    if (found == 0 && (key || table)) {
      found = i;
      in_a_table = table;
    }
  }
  return found;
}

// The line in which the outermost list begins that is still open where `error` is; 0: none. Strings of one line
// and comments are passed over.
int OpenList(std::string_view text, const SyntaxError& error) {
  int line = 0, first = 0, depth = 0;
  for (const std::string_view one : LinesOf(text)) {
    if (++line > error.at.line) break;
    if (depth == 0 && Trim(one).starts_with('[')) continue;  // a table's name
    char quote = 0;
    for (std::size_t i = 0; i < one.size() && (quote != 0 || one[i] != '#'); ++i) {
      const char c = one[i];
      if (line == error.at.line && static_cast<int>(i) + 1 >= error.at.column && quote == 0) break;
      if (quote == '"' && c == '\\') {
        ++i;
      } else if (quote != 0 || c == '"' || c == '\'') {
        quote = quote == 0 ? c : quote == c ? 0 : quote;
      } else if (c == '[' && depth++ == 0) {
        first = line;
      } else if (c == ']' && depth > 0) {
        --depth;
      }
    }
  }
  return depth > 0 ? first : 0;
}

// What Python and YAML call true and false, or empty.
std::string Boolean(std::string_view word) {
  std::string lower(word);
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  if (lower == "true" || lower == "false") return fmt::format("write {}, in lower case", lower);
  const bool yes = lower == "yes" || lower == "on";
  if (!yes && lower != "no" && lower != "off") return {};
  return fmt::format("write {}, or put text in quotes: \"{}\"", yes, word);
}

std::string GivenTwice(const SyntaxError& error, std::string_view text) {
  const std::size_t begin = error.message.rfind(" '");
  if (begin == error.message.npos || !error.message.ends_with('\'')) return {};
  const std::string name = error.message.substr(begin + 2, error.message.size() - begin - 3);
  const int first = FirstOf(name, text, error.at.line);
  if (Says(error, "existing table"))
    return fmt::format("[{}] is repeated{}; merge the two", name,
                       first == 0 ? "" : fmt::format(", first in line {}", first));
  return fmt::format("'{}' is given twice{}; remove one", name,
                     first == 0 ? "" : fmt::format(", first in line {}", first));
}

}  // namespace

std::string SyntaxHint(const SyntaxError& error, std::string_view text) {
  const std::string_view line = LineOf(text, error.at.line);
  if (Says(error, "expected '=', saw ':'")) return FromYaml(line);
  if (Trim(line).starts_with('{') && error.at.line == 1)
    return "dtrun reads TOML, not JSON; write [job], and below it command = [\"python3\", \"train.py\"]";
  if (Says(error, "cannot redefine existing")) return GivenTwice(error, text);
  if (Says(error, "in string: ") && Says(error, "the line ends inside it"))
    return "a quote is missing at its end";
  if (Says(error, "in table header: ") && Says(error, "expected ']'")) return "close the name: [job]";
  if (const int open = OpenList(text, error); open != 0 && open < error.at.line)
    return fmt::format("the list that begins in line {} is not closed: add ']'", open);
  if (Says(error, "in array: ")) return "is a ',' or the ']' missing?";
  if (Says(error, "could not determine value type") || Says(error, "in boolean: ") ||
      Says(error, "in decimal integer: ") || Says(error, "in date") || Says(error, "in time") ||
      Says(error, "in floating-point")) {
    const std::string_view word = BareText(line, error.at.column);
    if (const std::string boolean = Boolean(word); !boolean.empty()) return boolean;
    if (!word.empty() && word.size() <= kLongest)
      return fmt::format("put text in quotes: \"{}\"", WordShown(word, line));
  }
  return {};
}

}  // namespace dtrun::config

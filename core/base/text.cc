#include "core/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace dtrun {
namespace {

// Control characters, and those that change the direction or line of the following text.
constexpr bool IsObeyed(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
  const bool mark = code == 0x61c || code == 0x200e || code == 0x200f;
  return control || mark || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// Whether `name` is `whole` with letters left out: "procs_per_host" of "processes_per_host".
bool Abbreviates(std::string_view name, std::string_view whole) {
  std::size_t at = 0;
  for (const char c : whole) at += at < name.size() && ToLower(name[at]) == ToLower(c) ? 1 : 0;
  return at == name.size() && ToLower(name[0]) == ToLower(whole[0]);
}

}  // namespace

std::string Lowercase(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), ToLower);
  return out;
}

std::string Indented(std::string_view text, std::string_view indent) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out;
}

std::string ReplaceAll(std::string text, std::string_view what, std::string_view with) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t at; (at = text.find(separator)) != text.npos; text.remove_prefix(at + 1)) {
    pieces.push_back(text.substr(0, at));
  }
  pieces.push_back(text);
  return pieces;
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  if (text.ends_with('\n'))
    text.remove_suffix(1);
  else if (text.empty())
    return {};
  return Split(text, '\n');
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character first = FirstCharacter(text);
    const std::size_t size = std::max<std::size_t>(first.size, 1);
    if (text[0] == '\n') {
      out += "\\n";
    } else if (first.size == 0) {  // no UTF-8, which a terminal of another character set may obey
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[0])));
    } else if (IsObeyed(first.code)) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(first.code));
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

int EditDistance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = ToLower(a[i - 1]) == ToLower(b[j - 1]) ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && ToLower(a[i - 1]) == ToLower(b[j - 2]) &&
          ToLower(a[i - 2]) == ToLower(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::optional<std::string> Nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  int best_distance = 4;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(name, candidate);
    const int longer = static_cast<int>(std::max(name.size(), candidate.size()));
    if (distance < best_distance && 2 * distance < longer) {
      best = candidate;
      best_distance = distance;
    }
  }
  constexpr std::size_t kShortest = 5;  // many names contain any two letters
  if (best || name.size() < kShortest) return best;
  const auto whole = [&](const std::string& one) { return Abbreviates(name, one); };
  const auto found = std::ranges::find_if(candidates, whole);
  return found != candidates.end() && std::ranges::count_if(candidates, whole) == 1 ? std::optional(*found)
                                                                                    : std::nullopt;
}

}  // namespace dtrun

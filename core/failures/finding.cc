#include "core/failures/finding.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/base/utf8.h"

namespace dtrun::failures {
namespace {

constexpr std::size_t kLongestLine = 400;

std::string_view LineAround(std::string_view text, std::size_t at) {
  const std::size_t before = text.substr(0, at).rfind('\n');
  std::size_t begin = before == text.npos ? 0 : before + 1;
  std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
  // Of an overlong line, keep the part around the match.
  if (at - begin > kLongestLine / 2) begin = at - kLongestLine / 2;
  end = std::min(end, begin + kLongestLine);
  while (begin < at && IsContinuation(text[begin])) ++begin;
  while (end > at && end < text.size() && IsContinuation(text[end])) --end;
  return text.substr(begin, end - begin);
}

// The last occurrence of a failure.
struct Occurrence {
  std::size_t at = 0;
  std::size_t line_number = 0;
  std::size_t count = 0;
  Captures captures;
};

}  // namespace

std::vector<Finding> FindFailures(std::string_view text, const Captures& facts) {
  if (text.empty()) return {};  // avoid reading the table, which takes longer than most searches
  return FindFailures(*Known(), text, facts);
}

std::vector<Finding> FindFailures(const Table& table, std::string_view text, const Captures& facts) {
  std::map<std::size_t, Occurrence> found;  // by failure index
  std::size_t counted = 0;                  // newlines before this position are counted in `line_number`
  std::size_t line_number = 1;
  for (std::size_t at = 0; at + sizeof(Table::Word) <= text.size(); ++at) {
    const auto* const patterns = table.At(Table::WordAt(text.substr(at)));
    if (patterns == nullptr) continue;
    for (const Table::Pattern& pattern : *patterns) {
      auto captures = Read(pattern.text, text.substr(at));
      if (!captures) continue;
      line_number +=
          static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                              text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      counted = at;
      Occurrence& occurrence = found[pattern.failure];
      // A second text of the same failure in one line adds nothing.
      if (occurrence.line_number == line_number) break;
      occurrence = {at, line_number, occurrence.count + 1, *std::move(captures)};
      break;
    }
  }
  line_number += static_cast<std::size_t>(
      std::count(text.begin() + static_cast<std::ptrdiff_t>(counted), text.end(), '\n'));
  if (text.ends_with('\n')) --line_number;

  std::vector<Finding> findings;
  for (const auto& [failure, occurrence] : found) {
    const std::shared_ptr<const KnownFailure>& known = table.failures()[failure];
    Captures said = occurrence.captures;
    said.insert(said.end(), facts.begin(), facts.end());
    findings.push_back({known, Fill(known->what, said), Fill(known->fix, said),
                        std::string(LineAround(text, occurrence.at)), occurrence.line_number,
                        line_number - std::min(line_number, occurrence.line_number), occurrence.count});
  }
  // Within a line, keep table order: specific before general.
  std::ranges::stable_sort(findings, {}, &Finding::line_number);
  return findings;
}

std::vector<Mention> FindMentions(std::string_view words) {
  constexpr std::size_t kFewestBytes = 4;
  std::vector<Mention> mentions;
  if (words.size() < kFewestBytes) return mentions;
  const std::string wanted = Lowercase(words);
  for (const auto& failure : Known()->failures()) {
    const auto text = std::ranges::find_if(
        failure->texts, [&](const std::string& one) { return Lowercase(one).find(wanted) != one.npos; });
    if (text != failure->texts.end()) mentions.push_back({failure, *text});
  }
  return mentions;
}

const Finding* Foremost(const std::vector<Finding>& findings) {
  const Finding* foremost = nullptr;
  for (const Finding& finding : findings) {
    // The first of two in one line is more specific.
    const bool later = foremost == nullptr || finding.lines_after != foremost->lines_after;
    const Depth depth = finding.failure->depth;
    if (foremost == nullptr || depth < foremost->failure->depth ||
        (depth == foremost->failure->depth && later)) {
      foremost = &finding;
    }
  }
  return foremost;
}

}  // namespace dtrun::failures

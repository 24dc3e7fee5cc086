#include "core/failures/finding.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "core/failures/known/tables.h"
#include "dtrun/known/cuda.hpp"
#include "dtrun/known/nccl.hpp"

namespace dtrun::failures {
namespace {

constexpr std::size_t kLongestLine = 400;

// All patterns by the first four bytes of their anchors: most places of a text are passed by
// with one look into a bitmap.
class Index {
 public:
  using Word = std::uint32_t;

  struct Pattern {
    std::size_t failure;  // index into AllFailures
    std::string_view text;
  };

  Index() {
    const auto& failures = AllFailures();
    for (std::size_t i = 0; i < failures.size(); ++i) {
      for (const std::string_view pattern : failures[i]->patterns) {
        if (pattern.empty()) continue;
        const Word word = WordAt(pattern);
        seen_.set(Slot(word));
        patterns_[word].push_back({i, pattern});
      }
    }
  }

  // REQUIRES: four bytes are left
  static Word WordAt(std::string_view text) {
    Word word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    return word;
  }

  // The patterns that may begin with `word`, in the order of the tables; null for none.
  const std::vector<Pattern>* At(Word word) const {
    if (!seen_.test(Slot(word))) return nullptr;
    const auto found = patterns_.find(word);
    return found == patterns_.end() ? nullptr : &found->second;
  }

 private:
  static std::size_t Slot(Word word) { return (word * 0x9e3779b1u) >> 16; }

  std::bitset<1 << 16> seen_;
  std::unordered_map<Word, std::vector<Pattern>> patterns_;
};

const Index& TheIndex() {
  static const Index index;
  return index;
}

std::string_view LineAround(std::string_view text, std::size_t at) {
  const std::size_t before = text.substr(0, at).rfind('\n');
  std::size_t begin = before == text.npos ? 0 : before + 1;
  std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
  // Of a line without end the part that matters.
  if (at - begin > kLongestLine / 2) begin = at - kLongestLine / 2;
  end = std::min(end, begin + kLongestLine);
  while (begin < at && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  while (end > at && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(begin, end - begin);
}

// Where a failure stands last.
struct Occurrence {
  std::size_t at = 0;
  std::size_t line_number = 0;
  std::size_t count = 0;
  known::Captures captures;
};

}  // namespace

const std::vector<const known::KnownFailure*>& AllFailures() {
  static const std::vector<const known::KnownFailure*> all = [] {
    std::vector<const known::KnownFailure*> failures;
    // The special before the general: of two at one place in a text, the first counts.
    for (const std::span<const known::KnownFailure> family :
         {std::span<const known::KnownFailure>(known::kNccl), UcxFailures(),
          std::span<const known::KnownFailure>(known::kCuda), GlooFailures(), MpiFailures(),
          TorchStoreFailures(), TorchFailures(), FrameworkFailures(), LinkFailures(), HostFailures()}) {
      for (const known::KnownFailure& failure : family) failures.push_back(&failure);
    }
    return failures;
  }();
  return all;
}

std::vector<Finding> FindFailures(std::string_view text) {
  if (text.empty()) return {};  // without the index, which takes longer to make than most texts to read
  const Index& index = TheIndex();
  std::map<std::size_t, Occurrence> found;  // by index of the failure
  std::size_t counted = 0;                  // newlines before this place are in `line_number`
  std::size_t line_number = 1;
  for (std::size_t at = 0; at + sizeof(Index::Word) <= text.size(); ++at) {
    const auto* const patterns = index.At(Index::WordAt(text.substr(at)));
    if (patterns == nullptr) continue;
    for (const Index::Pattern& pattern : *patterns) {
      auto captures = known::Read(pattern.text, text.substr(at));
      if (!captures) continue;
      line_number +=
          static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                              text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      counted = at;
      Occurrence& occurrence = found[pattern.failure];
      // A second text of one failure in one line adds nothing.
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
    const known::KnownFailure* const known = AllFailures()[failure];
    findings.push_back({known, known::Fill(known->what, occurrence.captures),
                        known::Fill(known->fix, occurrence.captures),
                        std::string(LineAround(text, occurrence.at)), occurrence.line_number,
                        line_number - std::min(line_number, occurrence.line_number), occurrence.count});
  }
  // Within a line the order of the tables stays: the special before the general.
  std::ranges::stable_sort(findings, {}, &Finding::line_number);
  return findings;
}

const Finding* Foremost(const std::vector<Finding>& findings) {
  const Finding* foremost = nullptr;
  for (const Finding& finding : findings) {
    // Of two in one line the first is the more special.
    const bool later = foremost == nullptr || finding.lines_after != foremost->lines_after;
    const bool cause = finding.failure->depth == known::Depth::kCause;
    const bool had_cause = foremost != nullptr && foremost->failure->depth == known::Depth::kCause;
    if ((cause && !had_cause) || (cause == had_cause && later)) foremost = &finding;
  }
  return foremost;
}

}  // namespace dtrun::failures

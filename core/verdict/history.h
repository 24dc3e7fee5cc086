// How the generations of a job ended: the last one in full, earlier ones as summaries. Keeps only the first
// and the latest summaries, so that memory and verdict.json stay bounded for jobs that restart for weeks.
//
// A value, owned by the root; loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>

#include "core/verdict/facts.h"

namespace dtrun::verdict {

struct GenerationSummary {
  std::uint64_t generation = 0;
  std::string result;      // "succeeded", "failed", ...: as in verdict.json
  std::string exit_class;  // empty: none
  int exit_code = 0;
  std::chrono::nanoseconds duration{};
  std::optional<int> first_failed_rank;
  std::string lost_host;  // empty: none
  int interrupt = 0;      // signal; 0: none
};

GenerationSummary Summarise(const Facts& facts);

class History {
 public:
  static constexpr std::size_t kFirst = 16;    // summaries kept from the beginning
  static constexpr std::size_t kLatest = 240;  // summaries kept from the end

  History(std::initializer_list<Facts> generations = {});

  // Output lines that the console's reader did not take.
  void NotShown(std::uint64_t lines) { lines_not_shown_ = lines; }
  // Adding the same generation again replaces its earlier result.
  void Add(Facts facts);

  bool empty() const { return latest_.empty() && first_.empty(); }
  // REQUIRES: not empty.
  const Facts& last() const { return last_; }
  const std::deque<GenerationSummary>& first() const { return first_; }
  const std::deque<GenerationSummary>& latest() const {
    return latest_;
  }  // the latest ones, after a gap of omitted()
  std::uint64_t omitted() const { return omitted_; }
  std::uint64_t lines_not_shown() const { return lines_not_shown_; }

 private:
  Facts last_;
  std::deque<GenerationSummary> first_, latest_;
  std::uint64_t omitted_ = 0, lines_not_shown_ = 0;
};

}  // namespace dtrun::verdict

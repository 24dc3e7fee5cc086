// How the generations of a job ended: the last one in full, those before it in short, and of very many only
// the first and the latest, so that a job that restarts for weeks holds and writes no more than one that does
// not.
//
// A value of the root; its loop thread.
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
  std::string result;      // "succeeded", "failed", ...: the words of verdict.json
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
  static constexpr std::size_t kFirst = 16;    // kept of the beginning
  static constexpr std::size_t kLatest = 240;  // and of the end

  History(std::initializer_list<Facts> generations = {});

  // Lines that the reader of the console has not taken.
  void NotShown(std::uint64_t lines) { lines_not_shown_ = lines; }
  // A generation that is added twice ended differently the second time, which stands.
  void Add(Facts facts);

  bool empty() const { return latest_.empty() && first_.empty(); }
  // REQUIRES: not empty.
  const Facts& last() const { return last_; }
  const std::deque<GenerationSummary>& first() const { return first_; }
  const std::deque<GenerationSummary>& latest() const {
    return latest_;
  }  // that follow, with a gap of omitted()
  std::uint64_t omitted() const { return omitted_; }
  std::uint64_t lines_not_shown() const { return lines_not_shown_; }

 private:
  Facts last_;
  std::deque<GenerationSummary> first_, latest_;
  std::uint64_t omitted_ = 0, lines_not_shown_ = 0;
};

}  // namespace dtrun::verdict

// The last lines of a rank's output, for the verdict.
//
// Owned by a RankOutput; one thread. Memory is bounded to a few KiB, without allocations per line. A line
// over 2 KiB is cut, so that one line cannot displace the others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::output {

class Tail {
 public:
  static constexpr std::size_t kBytes = 8 << 10;
  static constexpr std::size_t kLineBytes = 2 << 10;

  // REQUIRES: no newline in `line`
  void Append(std::string_view line);
  // Oldest first: at most `count` lines and kBytes of text.
  std::vector<std::string> Last(std::size_t count) const;

 private:
  std::string text_;  // each line followed by '\n'
};

}  // namespace dtrun::output

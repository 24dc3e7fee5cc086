// The last lines a rank printed, for the verdict.
//
// Owned by a RankOutput; one thread. Keeps a few KiB whatever is appended and allocates
// nothing per line. A line over 2 KiB is kept cut, so that one of them cannot push out the
// rest.
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

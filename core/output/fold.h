// Merges equal lines of many ranks into one line with their ranks: "[0-7] loading the data".
//
// One per generation, for its ranks; loop thread. A line waits until every rank has printed it or a later
// line, at most kPatience. Lines of one rank keep their order.
//
// Ranks of one program mostly print the same number of lines. A line that only some ranks print therefore
// waits among the lines with its number, so that later lines can still be merged.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/output/output.h"
#include "core/output/style.h"

namespace dtrun::output {

class Fold {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPatience{250};
  // Limits for waiting output; beyond them the oldest group is printed.
  static constexpr std::size_t kLines = 1024;
  static constexpr std::size_t kBytes = 1 << 20;

  Fold(int world_size, const Style& style, Console& console);
  ~Fold();  // prints the waiting lines
  Fold(const Fold&) = delete;
  Fold& operator=(const Fold&) = delete;

  // `rank` starts printing.
  void Add(int rank);
  // A line of `rank`, without its newline, as emitted by LineAssembler.
  void Take(int rank, Stream stream, std::string_view text, bool continues);
  // `rank` stops printing.
  void Remove(int rank);
  // Prints the lines that have waited long enough.
  void Flush();

 private:
  struct Group {
    std::uint64_t line;  // approximate line number within its ranks
    Stream stream;
    bool continues;
    std::string text;
    std::vector<int> ranks;
    Clock::time_point since;
    std::string stamp;
  };
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};

  struct Reader {
    std::uint64_t next = kGone;  // the first group that it may join
    std::uint64_t line = 0;      // line number of its last group
  };

  // Returns the number of a new group for a line of `reader`.
  std::uint64_t MakeGroup(Reader& reader, Stream stream, std::string_view text, bool continues);
  // The number of ranks that may still join the oldest group.
  std::size_t AwaitedByOldest() const;
  void PrintWhole();
  void PrintOldest();

  const int world_size_;
  const Style style_;
  Console& console_;
  std::deque<Group> groups_;
  std::size_t bytes_ = 0;
  std::uint64_t oldest_ = 0;     // the number of groups_.front(); later groups are consecutive
  std::vector<Reader> readers_;  // by rank
  std::size_t awaited_ = 0;      // AwaitedByOldest(), while there is a group
};

}  // namespace dtrun::output

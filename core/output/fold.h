// Equal lines of many ranks as one line, with the ranks: "[0-7] loading the data".
//
// One for the ranks of a generation, which outlive none of its calls; loop thread. A line waits until every
// rank has printed it or something after it, at the longest kPatience; lines of one rank keep their order.
// Ranks of one program mostly print the same number of lines, so a line that only some print waits among
// those of its number, and later ones still find each other.
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
  // What may wait; beyond it the oldest is printed.
  static constexpr std::size_t kLines = 1024;
  static constexpr std::size_t kBytes = 1 << 20;

  Fold(int world_size, const Style& style, Console& console);
  ~Fold();  // prints what waits
  Fold(const Fold&) = delete;
  Fold& operator=(const Fold&) = delete;

  // `rank` prints lines from now on.
  void Add(int rank);
  // A line of `rank` without its newline, as LineAssembler emits it.
  void Take(int rank, Stream stream, std::string_view text, bool continues);
  // `rank` prints nothing more.
  void Remove(int rank);
  // Prints what has waited long enough.
  void Flush();

 private:
  struct Group {
    std::uint64_t line;  // which of its ranks, about
    Stream stream;
    bool continues;
    std::string text;
    std::vector<int> ranks;
    Clock::time_point since;
    std::string stamp;
  };
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};

  struct Reader {
    std::uint64_t next = kGone;  // the number of the first group that it may join
    std::uint64_t line = 0;      // of the group that it was in last
  };

  // The number of a new group for a line of `reader`.
  std::uint64_t MakeGroup(Reader& reader, Stream stream, std::string_view text, bool continues);
  // How many ranks may still join the oldest group.
  std::size_t AwaitedByOldest() const;
  void PrintWhole();
  void PrintOldest();

  const int world_size_;
  const Style style_;
  Console& console_;
  std::deque<Group> groups_;
  std::size_t bytes_ = 0;
  std::uint64_t oldest_ = 0;     // the number of groups_.front(); later ones follow
  std::vector<Reader> readers_;  // by rank
  std::size_t awaited_ = 0;      // AwaitedByOldest(), while there is one
};

}  // namespace dtrun::output

// Cuts a stream of bytes into lines, in bounded memory and in one pass over the bytes.
//
// Value; one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace dtrun::process {

class LineCutter {
 public:
  // Lines are truncated to `longest` bytes.
  explicit LineCutter(std::size_t longest) : longest_(longest) {}

  // Calls take(std::string) for each line that ends in `bytes`, without its line ending. Skips empty lines.
  template <class Take>
  void Feed(std::string_view bytes, Take take) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      line_.append(part.substr(0, std::min(part.size(), longest_ - line_.size())));
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      Finish(take);
    }
  }

  // Passes on the unfinished line, if any.
  template <class Take>
  void Finish(Take take) {
    while (line_.ends_with('\r')) line_.pop_back();
    std::string line;
    line.swap(line_);
    if (!line.empty()) take(std::move(line));
  }

 private:
  const std::size_t longest_;
  std::string line_;
};

}  // namespace dtrun::process

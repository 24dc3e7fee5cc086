// Collects what is wrong with a config, in any order, and gives it back in the order of
// a reader: the file from its top, variables by name, --set as given. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/config/document.h"
#include "core/config/settings.h"

namespace dtrun::config {

// Where a value was given. Sorted by origin (DTRUN_ORIGIN_*), line, column, text.
struct Place {
  int origin = DTRUN_ORIGIN_DEFAULT;
  Position at;              // of --set: its number, as line
  std::string text;         // as it is printed
  std::string source = {};  // that without the value, which an origin keeps; empty: the same
};

class Problems {
 public:
  // Control characters in the texts are escaped.
  void Add(Place place, const std::string& message, const std::string& hint = {});
  // The same for a message of several lines, which stay lines.
  void AddLines(Place place, std::string_view message);
  std::vector<Problem> Take() &&;

 private:
  struct Entry {
    Place place;
    Problem problem;
  };
  std::vector<Entry> entries_;
};

}  // namespace dtrun::config

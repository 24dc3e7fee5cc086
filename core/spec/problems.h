// Collects the problems of a config in any order and returns them in reading order: the file from
// the top, variables by name, --set as given. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/spec/document.h"
#include "core/spec/read.h"

namespace dtrun::spec {

// Where a value was given. Sorted by origin (DTRUN_ORIGIN_*), line, column, text.
struct Place {
  int origin = DTRUN_ORIGIN_DEFAULT;
  Position at;              // for --set: its number, as the line
  std::string text;         // as printed
  std::string source = {};  // `text` without the value, for the option's origin; empty: the same as `text`
};

class Problems {
 public:
  // Control characters in the texts are escaped.
  void Add(Place place, const std::string& message, const std::string& hint = {});
  // The same for a message of several lines; keeps the line breaks.
  void AddLines(Place place, std::string_view message);
  void Append(Problems more);
  std::vector<Problem> Take() &&;

 private:
  struct Entry {
    Place place;
    Problem problem;
  };
  std::vector<Entry> entries_;
};

}  // namespace dtrun::spec

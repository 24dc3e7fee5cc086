// Flags of other launchers, given to dtrun itself: those that mean the same here, and what to type for those
// that do not.
//
// Constant data; any thread. A spelling that is dtrun's own is not listed: verbs declare it.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::cli {

struct ForeignFlag {
  std::string_view names;     // each between blanks, with '-' for '_': " -np --ntasks "
  std::string_view launcher;  // whose it is, for messages
  std::string_view ours;      // the option here that means the same; empty: none
  std::string_view instead;   // what to do here, when there is none
};

// Null: nobody's that is known. `flag`: without "=VALUE"; "_" and "-" are the same in it.
const ForeignFlag* FindForeignFlag(std::string_view flag);

}  // namespace dtrun::cli

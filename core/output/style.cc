#include "core/output/style.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace dtrun::output {

bool Style::Shows(int rank) const { return !ranks || std::ranges::binary_search(*ranks, rank); }

bool WantsColour(ColourWhen when, bool terminal) {
  if (when != ColourWhen::kAuto) return when == ColourWhen::kAlways;
  const char* const refused = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  if (refused != nullptr && *refused != '\0') return false;
  return terminal && kind != nullptr && std::string_view(kind) != "dumb";
}

}  // namespace dtrun::output

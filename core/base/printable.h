// Text from elsewhere as one line that a terminal shows and does not obey. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun {

// Control characters, and those that turn the direction of text, become "\n" or "\u001b"; all else stays.
std::string Printable(std::string_view text);

}  // namespace dtrun

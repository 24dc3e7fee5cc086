// Makes untrusted text one line that is safe to print on a terminal. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun {

// Escapes control characters and bidirectional controls as "\n" or "\u001b"; all other text is unchanged.
std::string Printable(std::string_view text);

}  // namespace dtrun

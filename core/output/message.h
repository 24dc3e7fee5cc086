// Formats dtrun's own messages for a stream: wrapped at the terminal's width and coloured. In "label: value"
// and "  label      value" the meaning of the label selects the colour: red for a failure, yellow for a
// warning, green for success.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::output {

// `text`: one or more lines. `columns`: where to wrap; 0: never. Quoted rank output ("    | ...") stays
// unchanged. Words are never split, so paths can be copied.
std::string Message(std::string_view text, int columns, bool colour);

}  // namespace dtrun::output

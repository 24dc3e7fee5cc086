// What dtrun itself says, as the stream shows it: broken between words at the width of a terminal, and in
// colours. Where a message reads "label: value" or "  label      value", its meaning decides its colour: red
// is a failure, yellow a warning, green a success.
//
// Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace dtrun::output {

// `text`: one or more lines. `columns`: where lines break; 0: nowhere. What ranks printed ("    | ...") stays
// as it is, and words are never broken: paths can be copied.
std::string Message(std::string_view text, int columns, bool colour);

}  // namespace dtrun::output

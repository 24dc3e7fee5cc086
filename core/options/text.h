// Quotes users' text for messages and checks that it is UTF-8. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dtrun::options {

// The offset of the first invalid UTF-8 byte, or npos.
std::size_t FindInvalidUtf8(std::string_view text);

// `text` as a TOML string: in double quotes, with \n, \", \u001b. An invalid UTF-8 byte becomes
// \xff, which is for messages only.
std::string Quote(std::string_view text);

// A value as error messages show it: secrets masked, quoted, truncated after about 60 bytes. Every error that
// repeats a value uses this.
std::string QuoteShort(std::string_view text);

// "true" or "false" for a boolean in another language's notation: True, yes, off, 1; otherwise
// empty.
std::string BooleanMeant(std::string_view word);

// The items quoted and joined with ", ".
template <class Texts>
std::string QuoteAll(const Texts& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + Quote(text);
  return out;
}

// Expands ~ and ${NAME} in paths that users write, as a shell would.
//
// Reads this process's environment; any thread while the environment does not change.

// Replaces a leading "~" or "~/" by HOME, "${NAME}" by that variable, and "$$" by "$". An error names what
// cannot be expanded: "~user", "$NAME" without braces, an unset variable.
Result<std::string> ExpandPath(std::string_view text);

// For messages: `path`, which is absolute, relative to the current folder if it lies below it; otherwise
// unchanged.
std::string ShownPath(const std::string& path);

}  // namespace dtrun::options

// Texts of users in messages: quoting, and the check that they are UTF-8. Pure
// functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dtrun::options {

// The offset of the first byte that is not UTF-8, or npos.
std::size_t FindInvalidUtf8(std::string_view text);

// `text` as a TOML string: in double quotes, with \n, \", \u001b; a byte that is not
// UTF-8 becomes \xff, which only messages show.
std::string Quote(std::string_view text);

// What messages show of a value: its secrets masked, quoted, cut after about 60 bytes. Every error that
// repeats a value shows it so.
std::string QuoteShort(std::string_view text);

// "true" or "false" for what other languages call so: True, yes, off, 1; else empty.
std::string BooleanMeant(std::string_view word);

// The items quoted and joined with ", ".
template <class Texts>
std::string QuoteAll(const Texts& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + Quote(text);
  return out;
}

}  // namespace dtrun::options

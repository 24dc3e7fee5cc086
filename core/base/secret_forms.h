// Secrets in a format set by their issuer: tokens, JSON web tokens, webhook URLs.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtrun {

// A secret near the start of a text: `size` characters, after `kept` characters that stay visible.
struct SecretSpan {
  std::size_t kept = 0;
  std::size_t size = 0;
};

// The secret at the start of `text`, if there is one. Call it at the start of each word.
std::optional<SecretSpan> FindSecretForm(std::string_view text);

}  // namespace dtrun

// Secrets that their issuers gave a form: tokens, JSON web tokens, addresses of webhooks.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtrun {

// A secret near the beginning of a text: `size` letters that follow `kept` letters.
struct SecretSpan {
  std::size_t kept = 0;
  std::size_t size = 0;
};

// What `text` begins with, when that is one. A form is looked for where a word begins, and only there.
std::optional<SecretSpan> FindSecretForm(std::string_view text);

}  // namespace dtrun

// Finds secrets in what people will read: records, plans, errors.
//
// By name, of a variable or an option; and by shape, wherever it stands: passwords in URLs, keys and tokens
// whose issuers gave them a form, private keys. What is found becomes "(secret)". It errs on the side of
// hiding, and cannot know every secret. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

inline constexpr std::string_view kSecret = "(secret)";

// Whether a variable or an option of this name holds a secret: "GITHUB_TOKEN", "api-key", "db.password".
bool NamesSecret(std::string_view name);

// What to show of `value`, which the name stands for.
std::string MaskValue(std::string_view name, std::string_view value);

// What to show of any text: secrets by their shape, and after a name as in "password=x", "--token x".
std::string MaskText(std::string_view text);

// What to show of any text: passwords and keys in URLs alone, of "https://ann:x@host" as of the path
// "/dir/https:/ann:x@host".
std::string MaskUrls(std::string_view text);

// What to show of a command line: MaskText, and words that follow an option for a secret.
std::vector<std::string> MaskArguments(const std::vector<std::string>& words);

}  // namespace dtrun

// Hides secrets in text that people will read: records, plans, errors.
//
// Finds them by the name of a variable or option, and by their format: passwords in URLs, issuers' keys and
// tokens, private keys. Replaces each by "(secret)". It rather hides too much, and cannot know every secret.
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun {

inline constexpr std::string_view kSecret = "(secret)";

// Whether a variable or an option of this name holds a secret: "GITHUB_TOKEN", "api-key", "db.password".
bool NamesSecret(std::string_view name);

// `value` with secrets hidden; `name` is the variable or option that holds it.
std::string MaskValue(std::string_view name, std::string_view value);

// Any text with secrets hidden: by format, and after a name as in "password=x", "--token x".
std::string MaskText(std::string_view text);

// Any text with passwords and keys hidden in URLs only, such as "https://ann:x@host", and in the path
// "/dir/https:/ann:x@host".
std::string MaskUrls(std::string_view text);

// A command line with secrets hidden: MaskText, and the words after an option that takes a secret.
std::vector<std::string> MaskArguments(const std::vector<std::string>& words);

// Finds secrets in arguments of well-known programs where no name marks them: `curl -u ann:secret`, `mysql
// -psecret`, `sshpass -p secret`, `vault login secret`, `aws configure set aws_secret_access_key secret`.
//
// Takes the words of a command line in order, each without its quotes. Used by one thread.
class SecretOptions {
 public:
  // The offset at which a secret starts in this word; it extends to the end of the word.
  std::optional<std::size_t> Next(std::string_view word);
  // Starts a new command.
  void Reset() { *this = {}; }

  struct Rule;

 private:
  std::string_view program_;       // a name in the table; empty: none
  const Rule* awaited_ = nullptr;  // the next word is its value
  const Rule* named_ = nullptr;    // kNamed: the next word is its name
};

}  // namespace dtrun

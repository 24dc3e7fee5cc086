// Finds secrets in arguments of well-known programs where no name marks them: `curl -u ann:secret`, `mysql
// -psecret`, `sshpass -p secret`, `vault login secret`, `aws configure set aws_secret_access_key secret`.
//
// Takes the words of a command line in order, each without its quotes. Used by one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtrun {

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

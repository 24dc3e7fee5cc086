// Words of well-known programs that a secret follows although they do not say so: `curl -u ann:secret`,
// `mysql -psecret`, `sshpass -p secret`, `vault login secret`, `aws configure set aws_secret_access_key
// secret`.
//
// Fed with the words of a command line, one after the other, each without its quotes. Used by one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace dtrun {

class SecretOptions {
 public:
  // Where in this word a secret begins; it goes on to the word's end.
  std::optional<std::size_t> Next(std::string_view word);
  // A new command begins.
  void Reset() { *this = {}; }

  struct Rule;

 private:
  std::string_view program_;       // one of the table's; empty: none
  const Rule* awaited_ = nullptr;  // whose value the next word is
  const Rule* named_ = nullptr;    // kNamed, whose name the next word is
};

}  // namespace dtrun

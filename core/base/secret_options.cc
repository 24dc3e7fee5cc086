#include "core/base/secret_options.h"

#include <algorithm>
#include <utility>

#include "core/base/secrets.h"
#include "core/base/text.h"

namespace dtrun {

enum class Shape {
  kAttached,   // -psecret; the next word is no secret
  kWhole,      // -p secret
  kAfterSign,  // -u ann:secret
  kOperand,    // login secret: the next word that is neither an option nor name=value
  kNamed,      // set aws_secret_access_key secret: two words, the first names a secret
};

struct SecretOptions::Rule {
  std::string_view program, option;
  Shape shape;
  char sign = ':';
};

namespace {

constexpr SecretOptions::Rule kRules[] = {
    {"curl", "-u", Shape::kAfterSign},
    {"curl", "--user", Shape::kAfterSign},
    {"curl", "-U", Shape::kAfterSign},
    {"curl", "--proxy-user", Shape::kAfterSign},
    {"mysql", "-p", Shape::kAttached},
    {"mysqladmin", "-p", Shape::kAttached},
    {"mysqldump", "-p", Shape::kAttached},
    {"mysqlimport", "-p", Shape::kAttached},
    {"mariadb", "-p", Shape::kAttached},
    {"mariadb-admin", "-p", Shape::kAttached},
    {"mariadb-dump", "-p", Shape::kAttached},
    {"mongo", "-p", Shape::kWhole},
    {"mongosh", "-p", Shape::kWhole},
    {"mongodump", "-p", Shape::kWhole},
    {"mongorestore", "-p", Shape::kWhole},
    {"mongoimport", "-p", Shape::kWhole},
    {"mongoexport", "-p", Shape::kWhole},
    {"sshpass", "-p", Shape::kWhole},
    {"plink", "-pw", Shape::kWhole},
    {"pscp", "-pw", Shape::kWhole},
    {"login", "-p", Shape::kWhole},  // of docker, podman, az, oc
    {"sqlcmd", "-P", Shape::kWhole},
    {"ipmitool", "-P", Shape::kWhole},
    {"redis-cli", "-a", Shape::kWhole},
    {"ldapsearch", "-w", Shape::kWhole},
    {"ldapadd", "-w", Shape::kWhole},
    {"ldapmodify", "-w", Shape::kWhole},
    {"ldapwhoami", "-w", Shape::kWhole},
    {"http", "-a", Shape::kAfterSign},
    {"https", "-a", Shape::kAfterSign},
    {"xh", "-a", Shape::kAfterSign},
    {"hey", "-a", Shape::kAfterSign},
    {"ab", "-A", Shape::kAfterSign},
    {"zip", "-P", Shape::kWhole},
    {"unzip", "-P", Shape::kWhole},
    {"7z", "-p", Shape::kAttached},
    {"7za", "-p", Shape::kAttached},
    {"7zr", "-p", Shape::kAttached},
    {"7zz", "-p", Shape::kAttached},
    {"rar", "-p", Shape::kAttached},
    {"rar", "-hp", Shape::kAttached},
    {"unrar", "-p", Shape::kAttached},
    {"ssh-keygen", "-N", Shape::kWhole},
    {"ssh-keygen", "-P", Shape::kWhole},
    {"vault", "login", Shape::kOperand},
    {"wandb", "login", Shape::kOperand},
    {"aws", "set", Shape::kNamed},  // aws configure set
    {"npm", "set", Shape::kNamed},  // npm config set, npm set
    {"poetry", "config", Shape::kNamed},
    {"smbclient", "-U", Shape::kAfterSign, '%'},
};

std::optional<std::size_t> SecretOf(const SecretOptions::Rule& rule, std::string_view word,
                                    std::size_t value) {
  if (rule.shape == Shape::kAfterSign) {
    const std::size_t sign = word.find(rule.sign, value);
    if (sign == std::string_view::npos) return {};
    value = sign + 1;
  }
  return value < word.size() ? std::optional(value) : std::nullopt;
}

// -su: the last of several combined one-letter options.
bool EndsCluster(std::string_view word, std::string_view option) {
  return word.size() > 2 && word[0] == '-' && word.back() == option[1] &&
         std::ranges::all_of(word.substr(1), IsLetter);
}

}  // namespace

std::optional<std::size_t> SecretOptions::Next(std::string_view word) {
  const bool option = !word.empty() && word[0] == '-';
  if (const Rule* rule = awaited_) {
    if (rule->shape == Shape::kOperand && (option || word.find('=') != std::string_view::npos)) return {};
    awaited_ = nullptr;
    if (rule->shape == Shape::kWhole) program_ = {};  // another program may follow: sshpass -p x ssh -p 22
    return SecretOf(*rule, word, 0);
  }
  if (!option) {
    if (const Rule* rule = std::exchange(named_, nullptr)) {
      if (NamesSecret(word)) awaited_ = rule;
      return {};
    }
    const auto follows = std::ranges::find_if(
        kRules, [&](const Rule& rule) { return rule.program == program_ && rule.option == word; });
    if (follows != std::end(kRules)) {
      (follows->shape == Shape::kNamed ? named_ : awaited_) = follows;
      return {};
    }
    const auto known = std::ranges::find(kRules, FileName(word), &Rule::program);
    if (known != std::end(kRules)) program_ = known->program;
    return {};
  }
  for (const Rule& rule : kRules) {
    if (program_ != rule.program) continue;
    const bool is_long = rule.option.starts_with("--");
    const bool in_next = word == rule.option ||
                         (!is_long && rule.shape == Shape::kAfterSign && EndsCluster(word, rule.option));
    if (in_next && rule.shape != Shape::kAttached) {
      awaited_ = &rule;
      return {};
    }
    if (!word.starts_with(rule.option)) continue;
    if (!is_long) return SecretOf(rule, word, rule.option.size());
    if (word[rule.option.size()] == '=') return SecretOf(rule, word, rule.option.size() + 1);
  }
  return {};
}

}  // namespace dtrun

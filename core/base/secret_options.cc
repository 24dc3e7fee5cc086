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
  std::string_view programs;  // with blanks between
  std::string_view option;
  Shape shape;
  char sign = ':';

  // `program` as it stands in `programs`; empty: it does not.
  std::string_view Find(std::string_view program) const {
    for (std::size_t at = 0; (at = programs.find(program, at)) != programs.npos; ++at) {
      const std::size_t end = at + program.size();
      const bool whole =
          (at == 0 || programs[at - 1] == ' ') && (end == programs.size() || programs[end] == ' ');
      if (whole) return programs.substr(at, program.size());
    }
    return {};
  }
};

namespace {

constexpr SecretOptions::Rule kRules[] = {
    {"curl", "-u", Shape::kAfterSign},
    {"curl", "--user", Shape::kAfterSign},
    {"curl", "-U", Shape::kAfterSign},
    {"curl", "--proxy-user", Shape::kAfterSign},
    {"mysql mysqladmin mysqldump mysqlimport mariadb mariadb-admin mariadb-dump", "-p", Shape::kAttached},
    {"7z 7za 7zr 7zz rar unrar", "-p", Shape::kAttached},
    {"rar", "-hp", Shape::kAttached},
    {"mongo mongosh mongodump mongorestore mongoimport mongoexport sshpass", "-p", Shape::kWhole},
    {"login", "-p", Shape::kWhole},  // of docker, podman, az, oc
    {"plink pscp", "-pw", Shape::kWhole},
    {"sqlcmd ipmitool zip unzip ssh-keygen", "-P", Shape::kWhole},
    {"ssh-keygen", "-N", Shape::kWhole},
    {"redis-cli", "-a", Shape::kWhole},
    {"ldapsearch ldapadd ldapmodify ldapwhoami", "-w", Shape::kWhole},
    {"http https xh hey", "-a", Shape::kAfterSign},
    {"ab", "-A", Shape::kAfterSign},
    {"smbclient", "-U", Shape::kAfterSign, '%'},
    {"vault wandb", "login", Shape::kOperand},
    {"aws npm", "set", Shape::kNamed},  // aws configure set, npm config set, npm set
    {"poetry", "config", Shape::kNamed},
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
        kRules, [&](const Rule& rule) { return rule.option == word && !rule.Find(program_).empty(); });
    if (follows != std::end(kRules)) {
      (follows->shape == Shape::kNamed ? named_ : awaited_) = follows;
      return {};
    }
    for (const Rule& rule : kRules) {
      if (const auto known = rule.Find(FileName(word)); !known.empty()) program_ = known;
    }
    return {};
  }
  for (const Rule& rule : kRules) {
    if (rule.Find(program_).empty()) continue;
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

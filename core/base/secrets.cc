// Secrets in a format set by their issuer: tokens, JSON web tokens, webhook URLs.

#include "core/base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <utility>

#include "core/base/secret_value.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

// A letter of base64, base64url or hex.
bool IsKeyLetter(char c) {
  return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '=';
}

// "apiKey", "API_KEY" and "api-key" -> api, key.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool hump = i > 0 && name[i] != ToLower(name[i]) && name[i - 1] != ToUpper(name[i - 1]);
    if ((!IsLetterOrDigit(name[i]) || hump) && !words.back().empty()) words.emplace_back();
    if (IsLetterOrDigit(name[i])) words.back() += ToLower(name[i]);
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <std::size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& all) {
  return std::ranges::find(all, word) != all.end();
}

// A name with one of these words is secret, wherever the word stands; a substring may be
// coincidence.
constexpr std::array<std::string_view, 18> kWords = {
    "token", "secret",        "secrets", "password", "passwd",     "passphrase",  "pass",  "pwd",    "apikey",
    "auth",  "authorization", "bearer",  "cookie",   "credential", "credentials", "creds", "bindpw", "otp"};
constexpr std::array<std::string_view, 8> kParts = {"password",   "passwd",    "secret",     "apikey",
                                                    "credential", "accesskey", "privatekey", "passphrase"};
// Keys that are not secret: --sort-key, --num-key-value-heads.
constexpr std::array<std::string_view, 16> kKeysOf = {
    "api",  "access",  "secret",  "private", "ssh",     "encryption", "signing", "account",
    "auth", "license", "storage", "master",  "service", "session",    "wandb",   "hf"};
// Endings that make a name harmless: SSH_AUTH_SOCK, TOKEN_COUNT.
constexpr std::array<std::string_view, 12> kHarmlessEnds = {
    "sock", "socket", "type", "method", "count", "length", "limit", "size", "timeout", "file", "path", "dir"};

// PGPASS and SSHPASS end in "pass" and are secret; these words also do and are not.
constexpr std::array<std::string_view, 13> kOtherPasses = {
    "bypass",    "compass", "encompass", "surpass", "trespass", "overpass", "underpass",
    "multipass", "onepass", "twopass",   "lowpass", "highpass", "bandpass"};
// What is pinned: I_MPI_PIN, --cpu-pin.
constexpr std::array<std::string_view, 9> kPinned = {"mpi",     "cpu",    "core", "cores", "thread",
                                                     "threads", "memory", "numa", "gpu"};

// Long, only key letters, at least a tenth of them digits: not a path, sentence or number.
bool LooksRandom(std::string_view value) {
  constexpr std::size_t kLeast = 20;
  if (value.size() < kLeast || value[0] == '/' || !std::ranges::all_of(value, IsKeyLetter)) return false;
  const auto digits = std::ranges::count_if(value, IsDigit);
  const auto size = static_cast<std::ptrdiff_t>(value.size());
  return digits >= 3 && digits < size && digits * 10 >= size;
}

// SESSION_ID, --session-id, PHPSESSID, CARD_PIN, PGPASS, --dbpwd.
bool EndsSecret(std::string_view name, const std::vector<std::string>& words) {
  const std::string& last = words.back();
  if (last == "pin") {
    return name != "-pin" &&  // GROMACS binds threads with it
           std::ranges::none_of(words, [](const std::string& word) { return IsOneOf(word, kPinned); });
  }
  if (last == "id") return words.size() > 1 && words[words.size() - 2] == "session";
  return last.ends_with("sessionid") || last.ends_with("sessid") ||
         (last.ends_with("pass") && !IsOneOf(last, kOtherPasses)) ||
         (last.ends_with("pwd") && last != "oldpwd");
}

// CI_JOB_JWT_V2
bool IsVersion(std::string_view word) {
  return word.size() > 1 && word[0] == 'v' && IsDigits(word.substr(1));
}

// The name contains a hint of a key: AWSKEYS, authhdr, AZURE_DEVOPS_EXT_PAT.
bool SoundsSecret(std::string_view name) {
  const std::string lower = Lowercase(name);
  if (lower.ends_with("_pat")) return true;
  constexpr std::string_view kSounds[] = {"key", "token", "auth", "pass", "cookie", "cred", "secret", "pwd"};
  return std::ranges::any_of(kSounds,
                             [&](std::string_view sound) { return lower.find(sound) != std::string::npos; });
}

// Excludes PWD (the shell's folder) and --pwd (a container's working folder).
bool IsPasswordOfPwd(std::string_view name, std::string_view value) {
  return name != "PWD" && WordsOf(name) == std::vector<std::string>{"pwd"} &&
         std::string_view("/.~$").find(value[0]) == std::string_view::npos;
}

bool IsTokenLetter(char c) { return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.'; }

template <class Is>
std::size_t CountWhile(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is) - text.begin());
}

// Prefixes of issuers' tokens, by the least number of characters that follow.
constexpr std::string_view kForms10[] = {"xoxa-", "xoxb-", "xoxe-", "xoxe.xox",
                                         "xoxp-", "xoxr-", "xoxs-", "xapp-1-"};
constexpr std::string_view kForms16[] = {"AKIA",   "ASIA",    "glpat-",   "gldt-",    "glptt-",   "glrt-",
                                         "glcbt-", "glsoat-", "sk_live_", "sk_test_", "rk_live_", "rk_test_"};
constexpr std::string_view kForms20[] = {"ghp_",  "gho_",      "ghu_",   "ghs_", "ghr_",   "github_pat_",
                                         "hf_",   "sk-",       "nvapi-", "gsk_", "whsec_", "GOCSPX-",
                                         "ya29.", "dckr_pat_", "hvs.",   "hvb.", "tskey-"};
constexpr std::string_view kForms30[] = {"r8_",     "xai-",   "pplx-", "lsv2_", "AIza",   "SG.",
                                         "dop_v1_", "shpat_", "npm_",  "pypi-", "ATATT3", "AGE-SECRET-KEY-1"};
struct Forms {
  std::size_t least;
  std::span<const std::string_view> prefixes;
};
constexpr Forms kForms[] = {{10, kForms10}, {16, kForms16}, {20, kForms20}, {30, kForms30}};

// Anyone who knows the rest of such a URL may post there or act as the bot.
constexpr std::string_view kWebhooks[] = {
    "hooks.slack.com/services/",   "hooks.slack.com/workflows/",   "hooks.slack.com/triggers/",
    "discord.com/api/webhooks/",   "discordapp.com/api/webhooks/", "webhook.office.com/webhookb2/",
    "outlook.office.com/webhook/", "api.telegram.org/bot",
};

// Three parts of base64url; the first begins with {".
std::size_t JsonWebToken(std::string_view text) {
  constexpr std::size_t kLongestHeader = 4096;
  if (!text.starts_with("eyJ") || text.substr(0, kLongestHeader).find('.') == std::string_view::npos)
    return 0;
  const std::size_t size = CountWhile(text, IsTokenLetter);
  return size >= 30 && std::ranges::count(text.substr(0, size), '.') >= 2 ? size : 0;
}

// Base64 of a printable "user:password"; not every word over the base64 alphabet.
bool IsUserAndPassword(std::string_view base64) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (base64.ends_with('=')) base64.remove_suffix(1);
  unsigned bits = 0, held = 0;
  std::string plain;
  for (const char c : base64) {
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return false;
    bits = (bits << 6 | static_cast<unsigned>(value)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    plain += static_cast<char>(bits >> held & 0xff);
  }
  return plain.find(':') != std::string::npos &&
         std::ranges::all_of(plain, [](unsigned char c) { return std::isprint(c) != 0; });
}

bool BeginsWith(std::string_view text, std::string_view lower) {
  return Lowercase(text.substr(0, lower.size())) == lower;
}

// "Bearer x", "Basic YW5uOmE=".
std::optional<SecretSpan> AfterScheme(std::string_view text) {
  constexpr std::string_view kBearer = "bearer ", kBasic = "basic ";
  const auto is_letter = [](char c) {
    return IsTokenLetter(c) || c == '/' || c == '+' || c == '=' || c == '~';
  };
  for (const std::string_view scheme : {kBearer, kBasic}) {
    if (!BeginsWith(text, scheme)) continue;
    const std::string_view rest = text.substr(scheme.size());
    const std::size_t size = CountWhile(rest, is_letter);
    const bool found = scheme == kBearer ? size >= 8 : IsUserAndPassword(rest.substr(0, size));
    if (found) return SecretSpan{scheme.size(), size};
  }
  return {};
}

}  // namespace

bool NamesSecret(std::string_view name) {
  std::vector<std::string> words = WordsOf(name);
  if (words.size() > 1 && IsVersion(words.back())) words.pop_back();
  if (words.empty()) return false;
  // A variable that ends in KEY has one: DEPLOY_KEY. Options also name other kinds of keys.
  const bool variable = std::ranges::none_of(name, [](char c) { return c != ToUpper(c); });
  if (words.size() == 1 && words[0] == "pwd") return false;  // the shell's folder
  if (words.size() > 1 && IsOneOf(words.back(), kHarmlessEnds)) return false;
  if (words.back() == "jwt" || words.back() == "pw") return true;
  if (EndsSecret(name, words)) return true;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (IsOneOf(words[i], kWords)) return true;
    if (std::ranges::any_of(
            kParts, [&](std::string_view part) { return words[i].find(part) != std::string::npos; })) {
      return true;
    }
    if (words[i].ends_with("token")) return true;  // GITHUBTOKEN
    if (words[i] != "key" && words[i] != "keys") continue;
    if (words.size() == 1 || (i > 0 && i + 1 == words.size() && IsOneOf(words[i - 1], kKeysOf))) return true;
    if (variable && i + 1 == words.size()) return true;
  }
  return false;
}

std::string MaskValue(std::string_view name, std::string_view value) {
  if (value.empty()) return {};
  if (NamesSecret(name) || IsPasswordOfPwd(name, value) || (SoundsSecret(name) && LooksRandom(value)))
    return std::string(kSecret);
  return MaskText(value);
}

std::vector<std::string> MaskArguments(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  SecretOptions options;
  std::string_view option;  // the previous word, if it is an option without a value
  for (const std::string& word : words) {
    const bool is_option = word.size() > 1 && word[0] == '-' && word.find('=') == std::string::npos;
    const auto secret = options.Next(word);
    if (secret) {
      out.push_back(MaskText(word.substr(0, *secret)) + std::string(kSecret));
    } else {
      out.push_back(!option.empty() && !is_option ? MaskValue(option, word) : MaskText(word));
    }
    option = is_option ? std::string_view(word) : std::string_view();
  }
  return out;
}

std::optional<SecretSpan> FindSecretForm(std::string_view text) {
  for (const auto& [least, prefixes] : kForms) {
    for (const std::string_view prefix : prefixes) {
      if (!text.starts_with(prefix)) continue;
      const std::size_t follow = CountWhile(text.substr(prefix.size()), IsTokenLetter);
      if (follow >= least) return SecretSpan{0, prefix.size() + follow};
    }
  }
  for (const std::string_view address : kWebhooks) {
    if (!text.starts_with(address)) continue;
    constexpr std::string_view kEnds = "\"'<>(),;?# \t\r\n";
    const std::size_t size = CountWhile(text.substr(address.size()),
                                        [&](char c) { return kEnds.find(c) == std::string_view::npos; });
    constexpr std::size_t kLeast = 8;  // not "/bots" as in its manual
    if (size >= kLeast) return SecretSpan{address.size(), size};
  }
  if (const std::size_t size = JsonWebToken(text)) return SecretSpan{0, size};
  return AfterScheme(text);
}

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

#include "core/base/secrets.h"

#include <algorithm>
#include <array>

#include "core/base/secret_options.h"
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
constexpr std::array<std::string_view, 10> kOtherPasses = {"bypass",   "compass",   "surpass",   "trespass",
                                                           "overpass", "underpass", "multipass", "lowpass",
                                                           "highpass", "bandpass"};

// Long, only key letters, at least a tenth of them digits: not a path, sentence or number.
bool LooksRandom(std::string_view value) {
  constexpr std::size_t kLeast = 20;
  if (value.size() < kLeast || value[0] == '/' || !std::ranges::all_of(value, IsKeyLetter)) return false;
  const auto digits = std::ranges::count_if(value, IsDigit);
  const auto size = static_cast<std::ptrdiff_t>(value.size());
  return digits >= 3 && digits < size && digits * 10 >= size;
}

// SESSION_ID, PHPSESSID, CARD_PIN; I_MPI_PIN pins processes.
bool NamesSecretVariable(const std::vector<std::string>& words) {
  const std::string& last = words.back();
  if (last == "pin") return std::ranges::find(words, "mpi") == words.end();
  if (last == "id") return words.size() > 1 && words[words.size() - 2] == "session";
  return last.ends_with("sessionid") || last.ends_with("sessid") ||
         (last.ends_with("pass") && !IsOneOf(last, kOtherPasses));
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

}  // namespace

bool NamesSecret(std::string_view name) {
  std::vector<std::string> words = WordsOf(name);
  if (words.size() > 1 && IsVersion(words.back())) words.pop_back();
  if (words.empty()) return false;
  // Variables are named for their content: DEPLOY_KEY. Options also name other kinds of keys.
  const bool variable = std::ranges::none_of(name, [](char c) { return c != ToUpper(c); });
  if (words.size() == 1 && words[0] == "pwd") return false;  // the shell's folder
  if (words.size() > 1 && IsOneOf(words.back(), kHarmlessEnds)) return false;
  if (words.back() == "jwt" || words.back() == "pw") return true;
  if (variable && NamesSecretVariable(words)) return true;
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

}  // namespace dtrun

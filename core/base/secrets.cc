#include "core/base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "core/base/secret_options.h"

namespace dtrun {
namespace {

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsQuote(char c) { return c == '"' || c == '\''; }
// Of base64, base64url and hex.
bool IsKeyLetter(char c) {
  return IsAlnum(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '=';
}
bool IsNameLetter(char c) { return IsAlnum(c) || c == '_' || c == '-' || c == '.'; }
bool EndsValue(char c) { return IsSpace(c) || IsQuote(c) || c == ';' || c == '&' || c == ','; }

std::string Lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// "apiKey", "API_KEY" and "api-key" -> api, key.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool hump = i > 0 && std::isupper(static_cast<unsigned char>(name[i])) != 0 &&
                      std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if ((!IsAlnum(name[i]) || hump) && !words.back().empty()) words.emplace_back();
    if (IsAlnum(name[i]))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <std::size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& all) {
  return std::ranges::find(all, word) != all.end();
}

// Such a word hides what it names, wherever it stands in a name; a part of a word may be chance.
constexpr std::array<std::string_view, 15> kWords = {
    "token",  "secret", "secrets",       "password", "passwd", "passphrase", "pass",       "pwd",
    "apikey", "auth",   "authorization", "bearer",   "cookie", "credential", "credentials"};
constexpr std::array<std::string_view, 8> kParts = {"password",   "passwd",    "secret",     "apikey",
                                                    "credential", "accesskey", "privatekey", "passphrase"};
// Keys of other kinds are no secrets: --sort-key, --num-key-value-heads.
constexpr std::array<std::string_view, 16> kKeysOf = {
    "api",  "access",  "secret",  "private", "ssh",     "encryption", "signing", "account",
    "auth", "license", "storage", "master",  "service", "session",    "wandb",   "hf"};
// What names of secrets end in that are none: SSH_AUTH_SOCK, TOKEN_COUNT.
constexpr std::array<std::string_view, 12> kHarmlessEnds = {
    "sock", "socket", "type", "method", "count", "length", "limit", "size", "timeout", "file", "path", "dir"};

// Variables such as PGPASS and SSHPASS end in it, and so do these words.
constexpr std::array<std::string_view, 10> kOtherPasses = {"bypass",   "compass",   "surpass",   "trespass",
                                                           "overpass", "underpass", "multipass", "lowpass",
                                                           "highpass", "bandpass"};

struct Form {
  std::string_view beginning;
  std::size_t least;  // letters that follow
};
constexpr Form kForms[] = {
    {"AKIA", 16},     {"ASIA", 16},        {"ghp_", 20},   {"gho_", 20},  {"ghu_", 20},  {"ghs_", 20},
    {"ghr_", 20},     {"github_pat_", 20}, {"glpat-", 16}, {"hf_", 20},   {"sk-", 20},   {"sk_live_", 16},
    {"sk_test_", 16}, {"rk_live_", 16},    {"xoxb-", 10},  {"xoxp-", 10}, {"xoxa-", 10}, {"xoxr-", 10},
    {"xoxs-", 10},    {"AIza", 30},        {"ya29.", 20},  {"npm_", 30},  {"pypi-", 30}, {"dop_v1_", 30},
    {"nvapi-", 20},   {"gsk_", 20},        {"SG.", 30}};

class Masker {
 public:
  explicit Masker(std::string_view text) : text_(text) {}

  std::string Run() {
    while (at_ < text_.size()) {
      if (!(OptionOfProgram() || Pem() || Url() || AtWord())) out_ += text_[at_++];
    }
    return std::move(out_);
  }

 private:
  std::string_view Rest() const { return text_.substr(at_); }
  bool BeginsWord() const { return at_ == 0 || !IsAlnum(text_[at_ - 1]); }
  void Hide(std::size_t letters) {
    out_ += kSecret;
    at_ += letters;
  }
  void Keep(std::size_t letters) {
    out_ += text_.substr(at_, letters);
    at_ += letters;
  }
  template <class Is>
  std::size_t Span(std::size_t from, Is is) const {
    std::size_t end = from;
    while (end < text_.size() && is(text_[end])) ++end;
    return end - from;
  }

  // "curl -u ann:secret": each word of the text is shown to options_ once.
  bool OptionOfProgram() {
    constexpr std::string_view kEnds = ";|&\n";
    if (kEnds.find(text_[at_]) != std::string_view::npos) options_.Reset();
    const auto ends = [&](char c) { return IsSpace(c) || kEnds.find(c) != std::string_view::npos; };
    if (ends(text_[at_]) || IsQuote(text_[at_])) return false;
    if (at_ > 0 && !ends(text_[at_ - 1]) && !IsQuote(text_[at_ - 1])) return false;
    std::size_t end = at_ + Span(at_, [&](char c) { return !ends(c); });
    const auto secret = options_.Next(text_.substr(at_, end - at_));
    if (!secret) return false;
    // A quote that opens before the secret ends it, however many words it has; another one ends it, too.
    const std::size_t begin = at_ + *secret;
    std::size_t opening = begin;
    if (!IsQuote(text_[begin])) opening = at_ > 0 && IsQuote(text_[at_ - 1]) ? at_ - 1 : text_.size();
    if (opening < text_.size()) {
      const std::size_t closing = text_.find(text_[opening], opening + 1);
      if (closing != std::string_view::npos && closing > begin) end = closing + (opening == begin ? 1 : 0);
    } else {
      end = begin + Span(begin, [&](char c) { return !ends(c) && !IsQuote(c); });
    }
    Keep(begin - at_);
    Hide(end - at_);
    return true;
  }

  // "-----BEGIN ... PRIVATE KEY-----", to its end.
  bool Pem() {
    constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ", kDashes = "-----";
    if (!Rest().starts_with(kBegin)) return false;
    const std::size_t title = Rest().find(kDashes, kBegin.size());
    if (title == std::string_view::npos ||
        Rest().substr(0, title).find("PRIVATE") == std::string_view::npos) {
      return false;
    }
    const std::size_t end = Rest().find(kEnd, title);
    const std::size_t last = end == std::string_view::npos ? end : Rest().find(kDashes, end + kEnd.size());
    Hide(last == std::string_view::npos ? Rest().size() : last + kDashes.size());
    return true;
  }

  // "://user:password@", "://key@".
  bool Url() {
    if (!Rest().starts_with("://")) return false;
    const std::size_t begin = at_ + 3;
    const std::size_t length = Span(begin, [](char c) {
      return !IsSpace(c) && c != '/' && c != '?' && c != '#' && c != '"' && c != '\'';
    });
    const std::string_view authority = text_.substr(begin, length);
    const std::size_t sign = authority.rfind('@');
    Keep(3);
    if (sign == std::string_view::npos) return true;
    const std::size_t colon = authority.substr(0, sign).find(':');
    if (colon != std::string_view::npos) {
      Keep(colon + 1);
      Hide(sign - colon - 1);
    } else if (!SchemeHasUsers()) {
      Hide(sign);
    } else {
      Keep(sign);
    }
    return true;
  }

  // What stands before the @ is a name and no key: ssh://git@host.
  bool SchemeHasUsers() const {
    return out_.ends_with("ssh://") || out_.ends_with("sftp://") || out_.ends_with("git://");
  }

  bool AtWord() {
    if (!BeginsWord()) return false;
    return Known() || Jwt() || Bearer() || Netrc() || Named();
  }

  bool Known() {
    for (const Form& form : kForms) {
      if (!Rest().starts_with(form.beginning)) continue;
      const std::size_t length = Span(at_ + form.beginning.size(),
                                      [](char c) { return IsAlnum(c) || c == '_' || c == '-' || c == '.'; });
      if (length < form.least) continue;
      Hide(form.beginning.size() + length);
      return true;
    }
    return false;
  }

  // Three parts of base64url; the first begins with {".
  bool Jwt() {
    if (!Rest().starts_with("eyJ")) return false;
    const std::size_t length =
        Span(at_, [](char c) { return IsAlnum(c) || c == '_' || c == '-' || c == '.'; });
    const std::string_view word = Rest().substr(0, length);
    if (length < 30 || std::ranges::count(word, '.') < 2) return false;
    Hide(length);
    return true;
  }

  // "Authorization: Bearer x".
  bool Bearer() {
    constexpr std::size_t kWord = 7;
    if (Lower(Rest().substr(0, kWord)) != "bearer ") return false;
    const std::size_t length = Span(at_ + kWord, IsKeyLetter);
    if (length < 8) return false;
    Keep(kWord);
    Hide(length);
    return true;
  }

  // "machine example.org login ann password x", as .netrc has it.
  bool Netrc() {
    constexpr std::string_view kName = "password";
    if (!Rest().starts_with(kName)) return false;
    const std::size_t space = Span(at_ + kName.size(), IsSpace);
    const std::size_t size =
        Span(at_ + kName.size() + space, [](char c) { return !IsSpace(c) && !IsQuote(c); });
    std::size_t before = at_;
    WordBefore(before);
    const std::string_view key = WordBefore(before);
    if (space == 0 || size == 0 || (key != "login" && key != "machine" && key != "account")) return false;
    Keep(kName.size() + space);
    Hide(size);
    return true;
  }

  // Moves `end` to where the word begins.
  std::string_view WordBefore(std::size_t& end) const {
    while (end > 0 && IsSpace(text_[end - 1])) --end;
    const std::size_t last = end;
    while (end > 0 && !IsSpace(text_[end - 1]) && !IsQuote(text_[end - 1])) --end;
    return text_.substr(end, last - end);
  }

  // "password=x", "--token x", "apiKey: x".
  bool Named() {
    const std::size_t length = Span(at_, IsNameLetter);
    const std::string_view name = Rest().substr(0, length);
    if (length == 0 || !NamesSecret(name)) return false;
    std::size_t value = at_ + length;
    const bool option = name.starts_with("--");
    while (value < text_.size() && IsQuote(text_[value])) ++value;  // "apiKey": in JSON
    if (value >= text_.size()) return false;
    const char between = text_[value];
    if (between != '=' && between != ':' && !(option && between == ' ')) return false;
    ++value;
    while (between == ':' && value < text_.size() && text_[value] == ' ') ++value;
    char quote = 0;
    if (value < text_.size() && IsQuote(text_[value])) quote = text_[value++];
    const auto inside = [quote](char c) { return quote != 0 ? c != quote : !EndsValue(c); };
    std::size_t size = Span(value, inside);
    const std::string scheme = Lower(text_.substr(value, size));
    if (quote == 0 && (scheme == "bearer" || scheme == "basic")) size += 1 + Span(value + size + 1, inside);
    size = std::min(size, text_.size() - value);
    if (size == 0 || text_.substr(value, 2) == "//") return false;
    Keep(value - at_);
    Hide(size);
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  SecretOptions options_;
  std::string out_;
};

// Long, of letters and digits without a word between: no path, no sentence, no number.
bool LooksRandom(std::string_view value) {
  constexpr std::size_t kLeast = 20;
  if (value.size() < kLeast || value[0] == '/' || !std::ranges::all_of(value, IsKeyLetter)) return false;
  const auto digits = std::ranges::count_if(value, [](char c) { return c >= '0' && c <= '9'; });
  const auto size = static_cast<std::ptrdiff_t>(value.size());
  return digits >= 3 && digits < size && digits * 10 >= size;
}

// CI_JOB_JWT_V2
bool IsVersion(std::string_view word) {
  return word.size() > 1 && word[0] == 'v' &&
         std::ranges::all_of(word.substr(1), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The name speaks of keys somehow: AWSKEYS, authhdr.
bool SoundsSecret(std::string_view name) {
  const std::string lower = Lower(name);
  constexpr std::string_view kSounds[] = {"key", "token", "auth", "pass", "cookie", "cred", "secret", "pwd"};
  return std::ranges::any_of(kSounds,
                             [&](std::string_view sound) { return lower.find(sound) != std::string::npos; });
}

}  // namespace

bool NamesSecret(std::string_view name) {
  std::vector<std::string> words = WordsOf(name);
  if (words.size() > 1 && IsVersion(words.back())) words.pop_back();
  if (words.empty()) return false;
  // Variables are named for what they hold: DEPLOY_KEY. Options speak of other keys too.
  const bool variable = std::ranges::none_of(name, [](unsigned char c) { return std::islower(c) != 0; });
  if (words.size() == 1 && words[0] == "pwd") return false;  // where a shell is
  if (words.size() > 1 && IsOneOf(words.back(), kHarmlessEnds)) return false;
  if (words.back() == "jwt") return true;
  if (variable && words.back().ends_with("pass") && !IsOneOf(words.back(), kOtherPasses)) return true;
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
  if (NamesSecret(name) || (SoundsSecret(name) && LooksRandom(value))) return std::string(kSecret);
  return MaskText(value);
}

std::string MaskText(std::string_view text) { return Masker(text).Run(); }

std::vector<std::string> MaskArguments(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  SecretOptions options;
  std::string_view option;  // the word before, when it is one without a value
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

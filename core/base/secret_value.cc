// Finds secrets in text that people will read: by format, by a name in front, in URLs and in command lines.

#include "core/base/secret_value.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/base/secrets.h"
#include "core/base/text.h"

namespace dtrun {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

bool IsBlankLetter(char c) { return c == ' ' || c == '\t'; }
bool IsQuote(char c) { return c == '"' || c == '\''; }
bool EndsBareValue(char c) { return IsWhiteSpace(c) || IsQuote(c) || c == ';' || c == '&' || c == ','; }

// How many characters from `from` on `is` holds for.
template <class Is>
std::size_t SpanOf(std::string_view text, std::size_t from, Is is, std::size_t most = kNone) {
  std::size_t size = 0;
  while (size < most && from + size < text.size() && is(text[from + size])) ++size;
  return size;
}

class ValueReader {
 public:
  ValueReader(std::string_view text, std::size_t begin, std::size_t size)
      : text_(text), begin_(begin), at_(begin + size), name_(Lowercase(text.substr(begin, size))) {}

  std::optional<NamedValue> Read() {
    if (!ReadSign()) return {};
    value_.begin = at_;
    if (!(Quoted() || Bracketed('[', ']') || Bracketed('{', '}'))) Bare();
    value_.size = std::min(value_.size, text_.size() - value_.begin);
    if (value_.size == 0) return {};
    return value_;
  }

 private:
  char Letter(std::size_t at) const { return at < text_.size() ? text_[at] : '\0'; }
  // A quote, or a backslash and a quote as in JSON inside a string.
  std::size_t QuoteAt(std::size_t at) const {
    if (IsQuote(Letter(at))) return 1;
    return Letter(at) == '\\' && IsQuote(Letter(at + 1)) ? 2 : 0;
  }
  bool BeginsLine() const {
    std::size_t before = begin_;
    while (before > 0 && IsBlankLetter(text_[before - 1])) --before;
    return before == 0 || text_[before - 1] == '\n';
  }

  bool ReadSign() {
    const std::size_t behind = at_;
    while (const std::size_t quote = QuoteAt(at_)) at_ += quote;
    const bool quoted = at_ != behind;
    const std::size_t blanks = SpanOf(text_, at_, IsBlankLetter);
    value_.spaced = blanks > 0;
    const char sign = Letter(at_ + blanks), next = Letter(at_ + blanks + 1);
    const bool compares = sign == '=' && next == '=' && blanks > 0;
    if (compares) return false;
    if (sign == '=' || (sign == ':' && (quoted || blanks == 0 || next == '='))) {
      const bool two = (sign == '=' && next == '>') || (sign == ':' && next == '=');  // => and :=
      value_.sign = two ? '=' : sign;
      at_ += blanks + (two ? 2 : 1);
      const std::size_t more = SpanOf(text_, at_, IsBlankLetter);
      // Skips the blank, but not in "PASSWORD= command".
      if (value_.sign == ':' || value_.spaced || two || QuoteAt(at_ + more) != 0) at_ += more;
      return true;
    }
    const bool option = name_.size() > 2 && name_[0] == '-';
    if (!option || blanks == 0) return false;
    value_ = {.sign = ' '};
    at_ += blanks;
    return true;
  }

  bool Quoted() {
    const std::size_t quote = QuoteAt(at_);
    if (quote == 0) return false;
    value_.quoted = true;
    const std::string_view one = text_.substr(at_, quote);
    const std::string three(3, one[0]);
    const bool triple = quote == 1 && text_.substr(at_).starts_with(three);
    value_.begin = at_ + (triple ? 3 : quote);
    std::size_t end = text_.find(triple ? std::string_view(three) : one, value_.begin);
    const bool escapes = quote == 1 && one[0] == '"' && !triple;
    while (escapes && end != kNone && end > value_.begin && IsEscaped(end)) end = text_.find('"', end + 1);
    value_.size = std::min(end, text_.size()) - value_.begin;
    return true;
  }

  // Preceded by an odd number of backslashes.
  bool IsEscaped(std::size_t at) const {
    std::size_t first = at;
    while (first > value_.begin && text_[first - 1] == '\\') --first;
    return (at - first) % 2 == 1;
  }

  // A list, a table, or a value in ODBC braces.
  bool Bracketed(char opening, char closing) {
    if (value_.sign == ' ' || Letter(at_) != opening) return false;
    const std::size_t end = text_.find(closing, at_);
    if (end == kNone) return false;
    value_.size = end + 1 - at_;
    return true;
  }

  void Bare() {
    const bool header = value_.sign == ':';
    const bool cookie = header && name_.ends_with("cookie");
    const bool line = value_.spaced && value_.sign == '=' && BeginsLine();  // file line: name = a value
    if (line) {
      value_.size = SpanOf(text_, at_, [](char c) { return c != '\n' && c != '\r'; });
      return;
    }
    const auto in_header = [](char c) { return !IsQuote(c) && c != '\n' && c != '\r'; };
    const auto in_word = [](char c) { return !EndsBareValue(c); };
    value_.size = cookie ? SpanOf(text_, at_, in_header) : SpanOf(text_, at_, in_word);
    if (cookie || !name_.ends_with("authorization")) return;
    constexpr std::array<std::string_view, 5> kSchemes = {"bearer", "basic", "token", "apikey", "negotiate"};
    const std::string scheme = Lowercase(text_.substr(at_, value_.size));
    if (scheme == "digest" || scheme.starts_with("aws4-")) {  // has quoted parts
      value_.size = SpanOf(text_, at_, [](char c) { return c != '\n' && c != '\r'; });
    } else if (std::ranges::find(kSchemes, scheme) != kSchemes.end()) {
      value_.size += 1 + SpanOf(text_, at_ + value_.size + 1, in_word);
    }
  }

  std::string_view text_;
  std::size_t begin_, at_;
  std::string name_;  // in lower case
  NamedValue value_;
};

bool IsNameLetter(char c) { return IsLetterOrDigit(c) || c == '_' || c == '-' || c == '.'; }

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestWord = 4096;  // longest program or option name

// The last word of a name, in lower case: "X-Amz-Signature", "Pwd", "--pwd".
std::string LastWord(std::string_view name) { return Lowercase(name.substr(name.find_last_of("-_.") + 1)); }

class Masker {
 public:
  explicit Masker(std::string_view text) : text_(text) {}

  std::string Run() {
    while (at_ < text_.size()) {
      if (!(OptionOfProgram() || Pem() || Url() || AtWord())) out_ += text_[at_++];
    }
    return std::move(out_);
  }
  std::string RunUrls() {
    while (at_ < text_.size()) {
      if (!Url()) out_ += text_[at_++];
    }
    return std::move(out_);
  }

 private:
  std::string_view Rest() const { return text_.substr(at_); }
  bool BeginsWord() const { return at_ == 0 || !IsLetterOrDigit(text_[at_ - 1]); }
  void Hide(std::size_t letters) {
    out_ += kSecret;
    at_ += letters;
  }
  void Keep(std::size_t letters) {
    out_ += text_.substr(at_, letters);
    at_ += letters;
  }

  // "curl -u ann:secret": passes each word of the text to options_ once.
  bool OptionOfProgram() {
    constexpr std::string_view kEnds = ";|&\n";
    if (kEnds.find(text_[at_]) != kNone) options_.Reset();
    const auto ends = [&](char c) { return IsWhiteSpace(c) || kEnds.find(c) != kNone; };
    if (ends(text_[at_]) || IsQuote(text_[at_])) return false;
    if (at_ > 0 && !ends(text_[at_ - 1]) && !IsQuote(text_[at_ - 1])) return false;
    const auto in_word = [&](char c) { return !ends(c); };
    const auto secret = options_.Next(text_.substr(at_, SpanOf(text_, at_, in_word, kLongestWord)));
    if (!secret) return false;
    // If a quote opens before the secret, only that quote ends it, across words; otherwise any quote does.
    const std::size_t begin = at_ + *secret;
    std::size_t opening = begin, end = begin + SpanOf(text_, begin, in_word);
    if (!IsQuote(text_[begin])) opening = at_ > 0 && IsQuote(text_[at_ - 1]) ? at_ - 1 : text_.size();
    if (opening < text_.size()) {
      const std::size_t closing = text_.find(text_[opening], opening + 1);
      if (closing != kNone && closing > begin) end = closing + (opening == begin ? 1 : 0);
    } else {
      end = begin + SpanOf(text_, begin, [&](char c) { return !ends(c) && !IsQuote(c); });
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
    if (title == kNone || Rest().substr(0, title).find("PRIVATE") == kNone) {
      return false;
    }
    const std::size_t end = Rest().find(kEnd, title);
    const std::size_t last = end == kNone ? end : Rest().find(kDashes, end + kEnd.size());
    Hide(last == kNone ? Rest().size() : last + kDashes.size());
    return true;
  }

  // "://user:password@", "://key@"; also ":/user:password@" in a URL that was turned into a path.
  bool Url() {
    if (!Rest().starts_with(":/")) return false;
    const std::size_t slashes = Rest().starts_with("://") ? 3 : 2;
    const std::size_t begin = at_ + slashes;
    const std::size_t length = SpanOf(text_, begin, [](char c) {
      return !IsWhiteSpace(c) && c != '/' && c != '?' && c != '#' && c != '"' && c != '\'';
    });
    const std::string_view authority = text_.substr(begin, length);
    const std::size_t sign = authority.rfind('@');
    const std::size_t colon = authority.substr(0, sign).find(':');
    if (slashes == 2 && (sign == kNone || colon == kNone)) return false;
    Keep(slashes);
    if (sign == kNone) return true;
    if (colon != kNone) {
      Keep(colon + 1);
      Hide(sign - colon - 1);
    } else if (!SchemeHasUsers()) {
      Hide(sign);
    } else {
      Keep(sign);
    }
    return true;
  }

  // The text before the @ is a user name, not a key: ssh://git@host.
  bool SchemeHasUsers() const {
    return out_.ends_with("ssh://") || out_.ends_with("sftp://") || out_.ends_with("git://");
  }

  bool AtWord() {
    if (!BeginsWord()) return false;
    if (const auto form = FindSecretForm(Rest())) {
      Keep(form->kept);
      Hide(form->size);
      return true;
    }
    return Netrc() || Named();
  }

  // "machine example.org login ann password x", as in .netrc.
  bool Netrc() {
    constexpr std::string_view kName = "password";
    if (!Rest().starts_with(kName)) return false;
    const std::size_t space = SpanOf(text_, at_ + kName.size(), IsWhiteSpace);
    const std::size_t size =
        SpanOf(text_, at_ + kName.size() + space, [](char c) { return !IsWhiteSpace(c) && !IsQuote(c); });
    std::size_t before = at_;
    WordBefore(before);
    const std::string_view key = WordBefore(before);
    if (space == 0 || size == 0 || (key != "login" && key != "machine" && key != "account")) return false;
    Keep(kName.size() + space);
    Hide(size);
    return true;
  }

  // Moves `end` to the start of the word.
  std::string_view WordBefore(std::size_t& end) const {
    while (end > 0 && IsWhiteSpace(text_[end - 1])) --end;
    const std::size_t last = end;
    while (end > 0 && !IsWhiteSpace(text_[end - 1]) && !IsQuote(text_[end - 1])) --end;
    return text_.substr(end, last - end);
  }

  // "password=x", "--token x", "apiKey: x", "secret = 'x'".
  bool Named() {
    const std::size_t length = SpanOf(text_, at_, IsNameLetter, kLongestName);
    const std::string_view name = Rest().substr(0, length);
    if (length == 0) return false;
    const std::string word = LastWord(name);
    const bool folder = word == "pwd" && !NamesSecret(name),
               signature = word == "sig" || word.ends_with("signature");
    if (!folder && !signature && !NamesSecret(name)) return false;
    const auto value = FindNamedValue(text_, at_, length);
    if (!value || text_.substr(value->begin, 2) == "//") return false;
    if (folder && !IsPassword(*value)) return false;
    if (signature && !NamesSecret(name) && !SignsAddress(*value)) return false;
    const bool argument = value->spaced && !value->quoted && word.size() == length;
    if (argument && (word == "key" || word == "keys")) return false;  // sorted(x, key = len)
    if (value->sign == ' ') options_.Next(text_.substr(value->begin, value->size));
    Keep(value->begin - at_);
    Hide(value->size);
    return true;
  }

  // PWD=/home/ann is the shell's folder; "Uid=ann;Pwd=x" ends a connection string.
  bool IsPassword(const NamedValue& value) const {
    if (value.sign == ':' && !value.quoted) return false;  // as in "command not found"
    if (at_ > 0 && text_[at_ - 1] == ';') return true;
    return std::string_view("/.~$`").find(text_[value.begin]) == kNone;
  }

  // "?sv=2022&sig=x": the URL alone grants access.
  bool SignsAddress(const NamedValue& value) const {
    constexpr std::size_t kLeast = 16;
    const char before = at_ > 0 ? text_[at_ - 1] : '\0';
    return value.sign == '=' && !value.spaced && value.size >= kLeast && (before == '?' || before == '&');
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  SecretOptions options_;
  std::string out_;
};

}  // namespace

std::optional<NamedValue> FindNamedValue(std::string_view text, std::size_t begin, std::size_t size) {
  return ValueReader(text, begin, size).Read();
}

std::string MaskText(std::string_view text) { return Masker(text).Run(); }
std::string MaskUrls(std::string_view text) { return Masker(text).RunUrls(); }

}  // namespace dtrun

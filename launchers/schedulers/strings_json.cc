#include "launchers/schedulers/strings_json.h"

#include <algorithm>
#include <cstddef>

namespace dtrun::schedulers {
namespace {

constexpr int kMostDepth = 64;

// Reads from `at`; each member returns false where the text is something else, and then the rest is not
// looked at.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  bool AtEnd() {
    SkipBlanks();
    return at_ == text_.size();
  }

  bool Take(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Names of hosts need no escapes but those of the quote and the backslash.
  bool String(std::string* out) {
    if (!Take('"')) return false;
    out->clear();
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') return ++at_, true;
      if (text_[at_] == '\\' && ++at_ == text_.size()) return false;
      *out += text_[at_];
    }
    return false;
  }

  bool Strings(std::vector<std::string>* out) {
    out->clear();
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      if (!String(&out->emplace_back())) return false;
    } while (Take(','));
    return Take(']');
  }

  bool Skip(int depth = 0) {
    SkipBlanks();
    if (at_ == text_.size() || depth > kMostDepth) return false;
    std::string ignored;
    if (text_[at_] == '"') return String(&ignored);
    if (text_[at_] == '[' || text_[at_] == '{') return SkipGroup(text_[at_] == '{', depth);
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    return at_ > begin;
  }

  std::size_t at() const { return at_; }
  void Return(std::size_t at) { at_ = at; }

 private:
  bool SkipGroup(bool object, int depth) {
    const char close = object ? '}' : ']';
    ++at_;
    if (Take(close)) return true;
    std::string key;
    do {
      if (object && (!String(&key) || !Take(':'))) return false;
      if (!Skip(depth + 1)) return false;
    } while (Take(','));
    return Take(close);
  }

  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<std::string>> StringsOf(const std::string& json) {
  Reader reader(json);
  std::vector<std::string> out;
  if (!reader.Strings(&out) || !reader.AtEnd()) return std::nullopt;
  return out;
}

std::optional<std::map<std::string, std::vector<std::string>>> StringMembersOf(const std::string& json) {
  Reader reader(json);
  std::map<std::string, std::vector<std::string>> out;
  if (!reader.Take('{')) return std::nullopt;
  if (reader.Take('}')) return reader.AtEnd() ? std::optional(out) : std::nullopt;
  do {
    std::string key, text;
    if (!reader.String(&key) || !reader.Take(':')) return std::nullopt;
    const std::size_t begin = reader.at();
    std::vector<std::string> texts;
    if (reader.String(&text)) {
      out[key] = {text};
    } else if (reader.Return(begin); reader.Strings(&texts)) {
      out[key] = texts;
    } else if (reader.Return(begin); !reader.Skip()) {
      return std::nullopt;
    }
  } while (reader.Take(','));
  if (!reader.Take('}') || !reader.AtEnd()) return std::nullopt;
  return out;
}

}  // namespace dtrun::schedulers

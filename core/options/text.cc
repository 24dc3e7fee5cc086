#include "core/options/text.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/secrets.h"
#include "core/base/text.h"

namespace dtrun::options {
namespace {

constexpr std::size_t kShown = 60;

// 0 if no valid character starts there.
std::size_t SizeAt(std::string_view text, std::size_t at) { return FirstCharacter(text.substr(at)).size; }

Error Wrong(std::string_view text, std::string what) {
  return Error::Of(DTRUN_INVALID_ARGUMENT, "in the path {}, {}", QuoteShort(text), what);
}

}  // namespace

std::size_t FindInvalidUtf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = SizeAt(text, at);
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = SizeAt(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    if (size == 0) {
      out += fmt::format("\\x{:02x}", first);
    } else if (first == '"' || first == '\\') {
      out += {'\\', text[at]};
    } else if (first == '\n') {
      out += "\\n";
    } else if (first == '\t') {
      out += "\\t";
    } else {
      out += Printable(text.substr(at, size));
    }
    at += size == 0 ? 1 : size;
  }
  return out + '"';
}

std::string QuoteShort(std::string_view text) {
  const std::string shown = MaskText(text);
  if (shown.size() <= kShown) return Quote(shown);
  return Quote(PrefixWithin(shown, kShown)) + "...";
}

std::string BooleanMeant(std::string_view word) {
  const std::string lower = Lowercase(word);
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "1") return "true";
  if (lower == "false" || lower == "no" || lower == "off" || lower == "0") return "false";
  return {};
}

Result<std::string> ExpandPath(std::string_view text) {
  std::string out;
  std::string_view rest = text;
  if (rest.starts_with('~')) {
    const char* const home = std::getenv("HOME");
    if (rest.size() > 1 && rest[1] != '/')
      return Wrong(text,
                   "'~' stands for your own home only; write the whole path, or ./~ for a file of that name");
    if (home == nullptr || *home == '\0')
      return Wrong(text, "'~' stands for the variable HOME, which is not set; write the whole path");
    out = home;
    rest.remove_prefix(1);
  }
  for (auto dollar = rest.find('$'); dollar != rest.npos; dollar = rest.find('$')) {
    out += rest.substr(0, dollar);
    rest.remove_prefix(dollar + 1);
    if (rest.starts_with('$')) {
      out += '$';
      rest.remove_prefix(1);
      continue;
    }
    const auto close = rest.find('}');
    if (!rest.starts_with('{') || close == rest.npos)
      return Wrong(text, "a variable is written ${NAME}, and $$ stands for a dollar sign");
    const std::string name(rest.substr(1, close - 1));
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr)
      return Wrong(text, fmt::format("the variable {} is not set; set it, or write the whole path", name));
    out += value;
    rest.remove_prefix(close + 1);
  }
  return out.append(rest);
}

std::string ShownPath(const std::string& path) {
  std::error_code failure;
  const std::string here = std::filesystem::current_path(failure).string() + "/";
  return !failure && path.starts_with(here) ? path.substr(here.size()) : path;
}

}  // namespace dtrun::options

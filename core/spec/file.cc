#include "core/spec/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/base/fd.h"
#include "core/base/number.h"
#include "core/base/secrets.h"
#include "core/base/text.h"
#include "core/options/text.h"

namespace dtrun::spec {
namespace {

// A writer started together with dtrun must open a named pipe within this time; after that it may write
// slowly.
constexpr std::chrono::seconds kOpeningWait{1};
constexpr int kOpeningLookMs = 20;
constexpr int kPipeWaitMs = 10'000;
constexpr std::size_t kMostNames = 1000;
constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";  // written by Windows editors

Error TooLarge() {
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "the file has more than {}, the most that is read; check that it is the right file",
                   FormatBytes(kMaxFileBytes));
}

bool IsNamed(int pipe) {
  struct statfs system {};
  return ::fstatfs(pipe, &system) == 0 && system.f_type != PIPEFS_MAGIC;
}

Status AwaitWriter(int fd) {
  pollfd ready{fd, POLLIN, 0};
  if (::poll(&ready, 1, kPipeWaitMs) != 0) return {};
  return Error{DTRUN_TIMEOUT, "nothing was written to this pipe for 10s; is its writer running?"};
}

constexpr std::size_t kLongest = 60;

// Counted from 1; empty after the last line.
std::string_view LineOf(std::string_view text, int number) {
  const std::vector<std::string_view> lines = LinesOf(text);
  const auto index = static_cast<std::size_t>(number) - 1;
  return index < lines.size() ? lines[index] : std::string_view();
}

bool Says(const SyntaxError& error, std::string_view words) {
  return error.message.find(words) != error.message.npos;
}

// "command: [1]", a line of YAML.
std::string FromYaml(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view key = Trim(line.substr(0, colon)), value = Trim(line.substr(colon + 1));
  if (key.size() + value.size() > kLongest) return "dtrun reads TOML, not YAML; write key = value";
  return value.empty() ? fmt::format("dtrun reads TOML, not YAML; a table begins with [{}]", key)
                       : fmt::format("dtrun reads TOML, not YAML; write {} = {}", key, MaskValue(key, value));
}

// The bare word after '=' or inside a list; empty if there is none.
std::string_view BareWord(std::string_view line, int column) {
  const auto is_word = [](char c) { return IsLetterOrDigit(c) || std::strchr("_./:-${}~", c) != nullptr; };
  auto at = std::min(line.size(), static_cast<std::size_t>(std::max(column - 1, 0)));
  while (at > 0 && is_word(line[at - 1])) --at;
  std::size_t end = at;
  while (end < line.size() && is_word(line[end])) ++end;
  return line.substr(at, end - at);
}

// The bare words that form the whole value of a key, as in `command = python3 train.py`; otherwise the single
// word.
std::string_view BareText(std::string_view line, int column) {
  const std::size_t equals = line.find('=');
  if (equals != line.npos) {
    const std::string_view value = Trim(line.substr(equals + 1));
    if (value.size() <= kLongest && value.find_first_of("[]{},#\"'\\") == value.npos) return value;
  }
  return BareWord(line, column);
}

// The word for display; the line may name a secret.
std::string WordShown(std::string_view word, std::string_view line) {
  return MaskText(line).find(word) == std::string::npos ? std::string(kSecret) : MaskText(word);
}

// The line before `line` that first gave the key or table `name`; 0: not found.
int FirstOf(const std::string& name, std::string_view text, int line) {
  int found = 0;
  bool in_a_table = false;
  int i = 0;
  for (const std::string_view raw : LinesOf(text)) {
    if (++i >= line) break;
    const std::string_view one = Trim(raw);
    const bool header = one.starts_with('[') && one.ends_with(']');
    if (header && !in_a_table) found = 0;  // each table has its own keys
    const std::size_t equals = one.find('=');
    const bool key = equals != one.npos && Trim(one.substr(0, equals)) == name;
    const bool table = header && (one == "[" + name + "]" || one.ends_with("." + name + "]"));
    if (found == 0 && (key || table)) {
      found = i;
      in_a_table = table;
    }
  }
  return found;
}

// The start of the outermost list that is still open at `error`; line 0: none. Skips single-line strings and
// comments.
Position OpenList(std::string_view text, const SyntaxError& error) {
  Position first;
  int line = 0, depth = 0;
  for (const std::string_view one : LinesOf(text)) {
    if (++line > error.at.line) break;
    if (depth == 0 && Trim(one).starts_with('[')) continue;  // a table header
    char quote = 0;
    for (std::size_t i = 0; i < one.size() && (quote != 0 || one[i] != '#'); ++i) {
      const char c = one[i];
      if (line == error.at.line && static_cast<int>(i) + 1 >= error.at.column && quote == 0) break;
      if (quote == '"' && c == '\\') {
        ++i;
      } else if (quote != 0 || c == '"' || c == '\'') {
        quote = quote == 0 ? c : quote == c ? 0 : quote;
      } else if (c == '[' && depth++ == 0) {
        first = {line, static_cast<int>(i) + 1};
      } else if (c == ']' && depth > 0) {
        --depth;
      }
    }
  }
  return depth > 0 ? first : Position();
}

// Cannot continue a list: the end of the file, "key = ..." or "[table]".
bool IsBehindList(std::string_view line) {
  line = Trim(line.substr(0, line.find('#')));
  if (line.empty()) return true;
  const auto is_name = [](std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) {
      return IsLetterOrDigit(c) || std::strchr("_-. ", c) != nullptr;
    });
  };
  if (line.starts_with('[') && line.ends_with(']')) {
    while (line.starts_with('[') && line.ends_with(']')) line = line.substr(1, line.size() - 2);
    return is_name(line);
  }
  const std::size_t equals = line.find('=');
  return equals != line.npos && is_name(line.substr(0, equals));
}

// "true" or "false" for Python's and YAML's names, or empty.
std::string Boolean(std::string_view word) {
  const std::string meant = options::BooleanMeant(word);
  if (meant.empty() || IsDigits(word)) return {};
  if (meant.size() == word.size())  // otherwise yes, no, on or off
    return fmt::format("write {}, in lower case", meant);
  return fmt::format("write {}, or put text in quotes: \"{}\"", meant, word);
}

SyntaxProblem GivenTwice(const SyntaxError& error, std::string_view text) {
  const std::size_t begin = error.message.rfind(" '");
  if (begin == error.message.npos || !error.message.ends_with('\'')) return {error.at, error.message, ""};
  const std::string name = error.message.substr(begin + 2, error.message.size() - begin - 3);
  const int first = FirstOf(name, text, error.at.line);
  const std::string where = first == 0 ? "" : fmt::format(", first in line {}", first);
  if (Says(error, "existing table"))
    return {error.at, fmt::format("[{}] is repeated{}", name, where), "merge the two"};
  return {error.at, fmt::format("'{}' is given twice{}", name, where), "remove one"};
}

std::string ForValue(const SyntaxError& error, std::string_view line) {
  if (Says(error, "unknown escape sequence"))
    return R"(write \\ for a backslash, or put the text in single quotes)";
  if (!Says(error, "could not determine value type") && !Says(error, "in boolean: ") &&
      !Says(error, "in decimal integer: ") && !Says(error, "in date") && !Says(error, "in time") &&
      !Says(error, "in floating-point"))
    return {};
  if (line.find("==") != line.npos && Trim(line.substr(line.find('=') + 1)).starts_with('='))
    return "write one '='";
  const std::string_view word = BareText(line, error.at.column);
  if (const std::string boolean = Boolean(word); !boolean.empty()) return boolean;
  if (word.empty() || word.size() > kLongest) return {};
  if (word.starts_with('$'))
    return "write the value itself, in quotes; only paths expand variables of the environment, as ${HOME}";
  return fmt::format("put text in quotes: \"{}\"", WordShown(word, line));
}

// The hint for text before or after a value.
std::string ForLine(const SyntaxError& error, std::string_view line) {
  if (Says(error, "saw ';'") && Trim(line).starts_with(';')) return "comments begin with #";
  if (Says(error, "expected a comment or whitespace, saw ','")) return "remove the ','";
  if (!Says(error, "expected '=', ") && !Says(error, "encountered end-of-file")) return {};
  const std::string_view key = Trim(line.substr(0, line.find('#')));
  const bool bare = !key.empty() && key.size() <= kLongest && BareWord(key, 1) == key;
  return bare ? fmt::format("write {} = VALUE", key) : std::string();
}

std::string Hint(const SyntaxError& error, std::string_view text) {
  const std::string_view line = LineOf(text, error.at.line);
  if (Says(error, "expected '=', saw ':'")) return FromYaml(line);
  if (Trim(line).starts_with('{') && error.at.line == 1)
    return "dtrun reads TOML, not JSON; write [job], and below it command = [\"python3\", \"train.py\"]";
  if (Says(error, "in string: ") && Says(error, "the line ends inside it"))
    return "a quote is missing at its end";
  if (Says(error, "in table header: ") && Says(error, "expected ']'")) return "close the name: [job]";
  if (Says(error, "in array: ")) {
    const auto at = std::min(line.size(), static_cast<std::size_t>(std::max(error.at.column - 1, 0)));
    const bool item = line.substr(at).starts_with('"') || line.substr(at).starts_with('\'');
    return item ? "is a ',' missing before it?" : "is a ',' or the ']' missing?";
  }
  if (std::string hint = ForLine(error, line); !hint.empty()) return hint;
  return ForValue(error, line);
}

}  // namespace

Result<std::string> ReadFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, open() would block on a named pipe that has no writer.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) {
    const int number = errno;
    if (struct stat there{}; ::stat(path.c_str(), &there) == 0 && S_ISSOCK(there.st_mode))
      return Error{DTRUN_INVALID_ARGUMENT, "this is a socket; give the path of a file"};
    Error error = Error::System("cannot open the file", number);
    if (number == ENOENT) error.code = DTRUN_NOT_FOUND;
    if (number == EACCES) error.text += "; make it and its folders readable for this user";
    return error;
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::System("cannot read the file", errno);
  if (S_ISDIR(info.st_mode)) {
    return Error{DTRUN_INVALID_ARGUMENT, "this is a folder; give the path of a file in it"};
  }
  if (S_ISREG(info.st_mode) && info.st_size > static_cast<off_t>(kMaxFileBytes)) {
    return TooLarge();
  }
  // A named pipe reads as empty until its writer has opened it.
  bool opened = !S_ISFIFO(info.st_mode) || !IsNamed(fd.get());
  const auto patience = std::chrono::steady_clock::now() + kOpeningWait;
  std::string text;
  char part[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), part, sizeof part);
    if (got == 0 && !opened) {
      pollfd ready{fd.get(), POLLIN, 0};
      opened = ::poll(&ready, 1, kOpeningLookMs) > 0;
      if (!opened && std::chrono::steady_clock::now() > patience)
        return Error{DTRUN_TIMEOUT,
                     "this is a pipe without a writer; start its writer first, or name a file"};
      continue;
    }
    if (got == 0) return text.starts_with(kUtf8Mark) ? text.substr(kUtf8Mark.size()) : text;
    if (got > 0) {
      text.append(part, static_cast<std::size_t>(got));
      if (text.size() > kMaxFileBytes) return TooLarge();
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return Error::System("cannot read the file", errno);
    if (Status come = AwaitWriter(fd.get()); !come) return come.error();
  }
}

std::string WhereElse(const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path whole = std::filesystem::absolute(path, failure).lexically_normal();
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(whole.parent_path(), failure), end;
       !failure && entry != end && names.size() < kMostNames; entry.increment(failure)) {
    if (entry->path().extension() == ".toml") names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  const std::string name = path.filename().string();
  const auto nearest = Nearest(name, names);
  if (nearest && *nearest != name) {
    return fmt::format("did you mean '{}'?", (path.parent_path() / *nearest).string());
  }
  const std::string looked =
      path.is_absolute() ? "" : fmt::format("it was looked for at '{}'; ", whole.string());
  return looked + fmt::format("'dtrun config init {}' writes a new one", path.string());
}

SyntaxProblem Diagnose(const SyntaxError& error, std::string_view text) {
  const Position open = OpenList(text, error);
  const bool behind = open.line < error.at.line && IsBehindList(LineOf(text, error.at.line));
  if (open.line != 0 && (behind || Says(error, "encountered end-of-file")))
    return {open, "this list is not closed", "add ']'"};
  if (Says(error, "cannot redefine existing")) return GivenTwice(error, text);
  return {error.at, error.message, Hint(error, text)};
}

}  // namespace dtrun::spec

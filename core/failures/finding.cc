#include "core/failures/finding.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"
#include "core/base/text.h"

namespace dtrun::failures {
namespace {

constexpr std::size_t kLongestLine = 400;

std::string_view LineAround(std::string_view text, std::size_t at) {
  const std::size_t before = text.substr(0, at).rfind('\n');
  std::size_t begin = before == text.npos ? 0 : before + 1;
  std::size_t end = std::min(text.find_first_of("\r\n", at), text.size());
  // Of an overlong line, keep the part around the match.
  if (at - begin > kLongestLine / 2) begin = at - kLongestLine / 2;
  end = std::min(end, begin + kLongestLine);
  while (begin < at && IsContinuation(text[begin])) ++begin;
  while (end > at && end < text.size() && IsContinuation(text[end])) --end;
  return text.substr(begin, end - begin);
}

// Whether the text at `at` is not what a library said: the key of a KeyError, which may be any text, or the
// source line that a traceback shows below a frame.
bool IsQuoted(std::string_view text, std::size_t at) {
  const std::size_t newline = text.substr(0, at).rfind('\n');
  const std::size_t begin = newline == text.npos ? 0 : newline + 1;
  if (text.substr(begin, at - begin).find("KeyError: ") != text.npos) return true;
  if (begin == 0) return false;
  const std::size_t before = text.substr(0, newline).rfind('\n');
  const std::string_view above =
      text.substr(before == text.npos ? 0 : before + 1).substr(0, newline - before - 1);
  const std::size_t frame = above.find("  File \"");
  return frame != text.npos && above.find("\", line ", frame) != text.npos &&
         text.substr(begin).substr(std::min(frame, at - begin)).starts_with("    ");
}

// The last occurrence of a failure.
struct Occurrence {
  std::size_t at = 0;
  std::size_t line_number = 0;
  std::size_t count = 0;
  Captures captures;
};

// Lines that a dying process may print after the cause: tracebacks, warnings of other threads.
constexpr std::size_t kRecentLines = 400;
// Time to wait for the output of a shell's process substitution, <(...).
constexpr int kPipePatienceMs = 10'000;

Error CannotRead(const std::filesystem::path& file, int number) {
  return Error::System(fmt::format("read '{}'", file.string()), number);
}

// Facts recorded beside a log.
Captures FactsBeside(const std::filesystem::path& file) {
  const std::filesystem::path calls = file.parent_path() / "calls.txt";
  std::error_code none;
  return std::filesystem::is_regular_file(calls, none) ? Captures{{"calls", calls.string()}} : Captures();
}

Error NoLog(const std::filesystem::path& file, std::string_view what) {
  return Error::Of(DTRUN_INVALID_ARGUMENT,
                   "'{}' is {}; name a file with the text of the failure, or pipe the text into "
                   "'dtrun explain -'",
                   file.string(), what);
}

// Recent cause, then recent symptom, then anything old.
int Weight(const LogFinding& one) {
  constexpr int kDepths = 3;
  const int weight = kDepths - 1 - static_cast<int>(one.finding.failure->depth);
  return one.recent ? kDepths + weight : weight;
}

}  // namespace

std::vector<Finding> FindFailures(std::string_view text, const Captures& facts) {
  if (text.empty()) return {};  // avoid reading the table, which takes longer than most searches
  return FindFailures(*Known(), text, facts);
}

std::vector<Finding> FindFailures(const Table& table, std::string_view text, const Captures& facts) {
  std::map<std::size_t, Occurrence> found;  // by failure index
  std::size_t counted = 0;                  // newlines before this position are counted in `line_number`
  std::size_t line_number = 1;
  for (std::size_t at = 0; at + sizeof(Table::Word) <= text.size(); ++at) {
    const auto* const patterns = table.At(Table::WordAt(text.substr(at)));
    if (patterns == nullptr) continue;
    for (const Table::Pattern& pattern : *patterns) {
      auto captures = Read(pattern.text, text.substr(at));
      if (!captures || (pattern.text.find('\n') == std::string::npos && IsQuoted(text, at))) continue;
      line_number +=
          static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                              text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      counted = at;
      Occurrence& occurrence = found[pattern.failure];
      // A second text of the same failure in one line adds nothing.
      if (occurrence.line_number == line_number) break;
      occurrence = {at, line_number, occurrence.count + 1, *std::move(captures)};
      break;
    }
  }
  line_number += static_cast<std::size_t>(
      std::count(text.begin() + static_cast<std::ptrdiff_t>(counted), text.end(), '\n'));
  if (text.ends_with('\n')) --line_number;

  std::vector<Finding> findings;
  for (const auto& [failure, occurrence] : found) {
    const std::shared_ptr<const KnownFailure>& known = table.failures()[failure];
    Captures said = occurrence.captures;
    said.insert(said.end(), facts.begin(), facts.end());
    findings.push_back({known, Fill(known->what, said), Fill(known->fix, said),
                        std::string(LineAround(text, occurrence.at)), occurrence.line_number,
                        line_number - std::min(line_number, occurrence.line_number), occurrence.count});
  }
  // Within a line, keep table order: specific before general.
  std::ranges::stable_sort(findings, {}, &Finding::line_number);
  return findings;
}

std::vector<Mention> FindMentions(std::string_view words) {
  constexpr std::size_t kFewestBytes = 4;
  std::vector<Mention> mentions;
  if (words.size() < kFewestBytes) return mentions;
  const std::string wanted = Lowercase(words);
  for (const auto& failure : Known()->failures()) {
    const auto text = std::ranges::find_if(
        failure->texts, [&](const std::string& one) { return Lowercase(one).find(wanted) != one.npos; });
    if (text != failure->texts.end()) mentions.push_back({failure, *text});
  }
  return mentions;
}

const Finding* Foremost(const std::vector<Finding>& findings) {
  const Finding* foremost = nullptr;
  for (const Finding& finding : findings) {
    // The first of two in one line is more specific.
    const bool later = foremost == nullptr || finding.lines_after != foremost->lines_after;
    const Depth depth = finding.failure->depth;
    if (foremost == nullptr || depth < foremost->failure->depth ||
        (depth == foremost->failure->depth && later)) {
      foremost = &finding;
    }
  }
  return foremost;
}

Captures FactsOf(const std::filesystem::path& program) {
  return program.filename().string().starts_with("python") ? Captures{{"python", program.string()}}
                                                           : Captures();
}

Result<std::vector<Finding>> FindFailuresIn(const std::filesystem::path& file, std::size_t most_bytes,
                                            LogSource source, const Captures& facts) {
  // A user with write access to the folder could have put a pipe there, and opening it would block.
  const int own = source == LogSource::kRunLog     ? O_NONBLOCK | O_NOFOLLOW
                  : source == LogSource::kUserPath ? O_NONBLOCK
                                                   : 0;
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | own));
  struct stat status {};
  if (!fd && errno == ENXIO && source == LogSource::kUserPath) return NoLog(file, "a socket or a device");
  if (!fd || ::fstat(fd.get(), &status) != 0) return CannotRead(file, errno);
  if (S_ISDIR(status.st_mode)) return CannotRead(file, EISDIR);
  if (source == LogSource::kRunLog && (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())) {
    return Error::Of(DTRUN_FAILED_PRECONDITION,
                     "'{}' is not the log that dtrun has written: something else has taken its place",
                     file.string());
  }
  if (source == LogSource::kUserPath && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    return NoLog(file, "a device");
  // Pipes and /proc files have no size: read from the beginning.
  const auto size = static_cast<std::size_t>(status.st_size);
  const bool cut = size > most_bytes;
  if (cut && ::lseek(fd.get(), static_cast<off_t>(size - most_bytes), SEEK_SET) < 0)
    return CannotRead(file, errno);
  std::string text;
  constexpr std::size_t kBlock = std::size_t{1} << 18;
  while (text.size() < most_bytes) {
    const std::size_t had = text.size();
    text.resize(had + kBlock);
    const ssize_t got = ::read(fd.get(), text.data() + had, kBlock);
    text.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EAGAIN && S_ISFIFO(status.st_mode)) {
      pollfd ready{fd.get(), POLLIN, 0};
      if (::poll(&ready, 1, kPipePatienceMs) == 0)
        return NoLog(file, "a pipe into which nothing was written");
      continue;
    }
    if (got < 0 && errno != EINTR) return CannotRead(file, errno);
    if (got == 0) break;
  }
  if (source == LogSource::kUserPath && text.empty() && S_ISFIFO(status.st_mode))
    return NoLog(file, "a pipe into which nothing was written");
  Captures known = FactsBeside(file);
  known.insert(known.end(), facts.begin(), facts.end());
  std::vector<Finding> findings = FindFailures(text, known);
  if (cut) {
    for (Finding& finding : findings) finding.line_number = 0;
  }
  return findings;
}

Result<std::optional<LogFinding>> FindInLogs(const std::vector<std::filesystem::path>& files,
                                             LogSource source, const Captures& facts) {
  std::optional<LogFinding> best;
  for (const std::filesystem::path& file : files) {
    const auto findings = FindFailuresIn(file, kMostBytes, source, facts);
    if (!findings) return findings.error();
    std::vector<Finding> recent;
    for (const Finding& finding : *findings) {
      if (finding.lines_after <= kRecentLines) recent.push_back(finding);
    }
    const Finding* const foremost = Foremost(recent.empty() ? *findings : recent);
    if (foremost == nullptr) continue;
    LogFinding one{*foremost, file, !recent.empty()};
    if (!best || Weight(one) > Weight(*best)) best = std::move(one);
  }
  return best;
}

}  // namespace dtrun::failures

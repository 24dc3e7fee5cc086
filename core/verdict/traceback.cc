#include "core/verdict/traceback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/base/text.h"

namespace dtrun::verdict {
namespace {

constexpr std::string_view kTraceback = "Traceback (most recent call last)";

struct Traceback {
  std::size_t begin = 0;              // index of its first line
  std::vector<stacks::Frame> frames;  // innermost first
  std::string innermost;              // source line of the innermost frame, as printed; may be empty
};

bool IsNameChar(char c) { return IsLetterOrDigit(c) || c == '_' || c == '.'; }

bool IsNoError(std::string_view exception) {
  return exception == "KeyboardInterrupt" || exception == "SystemExit" || exception == "GeneratorExit";
}

// Strips the prefix that torch prints before the lines of an uncaught exception: "[rank1]: ".
std::string_view Bare(std::string_view line) {
  constexpr std::string_view kBegin = "[rank", kEnd = "]: ";
  if (!line.starts_with(kBegin)) return line;
  const auto end = line.find(kEnd);
  return end == std::string_view::npos || end > 16 ? line : line.substr(end + kEnd.size());
}

std::string_view Unindented(std::string_view line) {
  const auto begin = line.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

std::optional<stacks::Frame> FrameOf(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = ", in ";
  const auto number = line.find(kLine), in = line.find(kIn);
  if (!line.starts_with(kFile) || number == std::string_view::npos || in == std::string_view::npos)
    return std::nullopt;
  stacks::Frame frame;
  frame.file = line.substr(kFile.size(), number - kFile.size());
  frame.line = std::atoi(std::string(line.substr(number + kLine.size(), 9)).c_str());
  frame.function = line.substr(in + kIn.size());
  return frame;
}

// In order. The beginning of the first one may be cut off.
std::vector<Traceback> TracebacksIn(const std::vector<std::string>& lines) {
  std::vector<Traceback> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = Bare(lines[i]);
    if (line.starts_with(kTraceback)) found.push_back({i, {}, {}});
    auto frame = FrameOf(line);
    if (!frame) continue;
    if (found.empty()) found.push_back({i, {}, {}});
    found.back().frames.insert(found.back().frames.begin(), *std::move(frame));
    const std::string_view next = i + 1 < lines.size() ? Bare(lines[i + 1]) : std::string_view();
    found.back().innermost = next.starts_with("    ") ? Unindented(next) : std::string_view();
  }
  return found;
}

std::optional<stacks::Place> PlaceOf(const Traceback& traceback) {
  if (traceback.frames.empty()) return std::nullopt;
  return stacks::PlaceOf(traceback.frames, [](const std::string&, int) { return std::string(); });
}

bool EndsInAWait(const Traceback& traceback) {
  const auto place = PlaceOf(traceback);
  return place && place->stand != stacks::Stand::kElsewhere;
}

// "python3: can't open file '/x/trian.py': [Errno 2] No such file or directory", "python3: No module named x"
bool IsOfTheInterpreter(std::string_view line) {
  const std::string_view program = line.substr(0, line.find(": "));
  if (!FileName(program).starts_with("python")) return false;
  const std::string_view said = line.substr(program.size());
  return said.starts_with(": can't open file '") || said.starts_with(": No module named ");
}

}  // namespace

bool SaysMemoryError(const std::vector<std::string>& lines) {
  const std::string error = ErrorIn(lines);
  const std::string name = error.substr(0, error.find(':'));
  return name == "MemoryError" || name.ends_with("._ArrayMemoryError");
}

std::string_view ExceptionOf(std::string_view error) {
  std::size_t end = 0;
  while (end < error.size() && IsNameChar(error[end])) ++end;
  if (end == 0 || IsDigit(error.front())) return {};
  if (end < error.size() && !error.substr(end).starts_with(": ") && error.substr(end) != ":") return {};
  return error.substr(0, end);
}

std::string ErrorIn(const std::vector<std::string>& lines) {
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::string_view line = Bare(lines[i]);
    if (IsOfTheInterpreter(line)) return std::string(line);
    const std::string_view exception = ExceptionOf(line);
    if (exception.empty() || IsNoError(exception)) continue;
    const bool named = exception.ends_with("Error") || exception.ends_with("Exception");
    const bool traced = std::any_of(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(i),
                                    [](const std::string& before) {
                                      const std::string_view bare = Bare(before);
                                      return bare.starts_with("  File \"") || bare.starts_with(kTraceback);
                                    });
    if (traced || (named && line.find(": ") != std::string_view::npos)) return std::string(line);
  }
  return {};
}

bool SaysMoreThanItsError(const std::vector<std::string>& lines) {
  const std::string error = ErrorIn(lines);
  const auto at = std::find_if(lines.rbegin(), lines.rend(),
                               [&](const std::string& line) { return Bare(line) == error; });
  return std::any_of(lines.rbegin(), at, [](const std::string& line) { return !line.empty(); });
}

std::optional<stacks::Place> PlaceIn(const std::vector<std::string>& lines) {
  const std::vector<Traceback> found = TracebacksIn(lines);
  return found.empty() ? std::nullopt : PlaceOf(found.back());
}

std::string ErrorPlaceIn(const std::vector<std::string>& lines) {
  const auto place = PlaceIn(lines);
  if (!place) return {};
  return place->what.empty() ? "at " + place->where : fmt::format("in {} at {}", place->what, place->where);
}

bool RaisedByTheProgram(const std::vector<std::string>& lines) {
  const std::vector<Traceback> found = TracebacksIn(lines);
  if (found.empty() || found.back().frames.empty() || std::ranges::any_of(found, EndsInAWait)) return false;
  const std::string& file = found.back().frames.front().file;
  const bool own = file.find("-packages/") == std::string::npos &&
                   file.find("/lib/python3") == std::string::npos && !file.starts_with('<');
  return own && (found.back().innermost == "raise" || found.back().innermost.starts_with("raise "));
}

bool EndedAThread(const std::vector<std::string>& lines) {
  const std::vector<Traceback> found = TracebacksIn(lines);
  if (found.empty() || found.back().begin == 0) return false;
  const std::string_view before = Bare(lines[found.back().begin - 1]);
  const bool process = before.ends_with(':') && before.find("Process") != std::string_view::npos;
  return before.starts_with("Exception in thread") || process;
}

std::vector<std::string> FromLastTraceback(const std::vector<std::string>& lines) {
  const std::vector<Traceback> found = TracebacksIn(lines);
  const std::size_t begin = found.empty() ? 0 : found.back().begin;
  return {lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end()};
}

}  // namespace dtrun::verdict

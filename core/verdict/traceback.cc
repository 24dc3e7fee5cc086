#include "core/verdict/traceback.h"

#include <fmt/format.h>

#include <algorithm>
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

// Reads `  File "train.py", line 3` and what follows the number: `in`, then the function. A syntax error has
// neither.
std::optional<stacks::Frame> ReadFrame(std::string_view line, std::string_view in) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ";
  const auto number = line.find(kLine);
  if (!line.starts_with(kFile) || number == std::string_view::npos) return std::nullopt;
  stacks::Frame frame;
  frame.file = line.substr(kFile.size(), number - kFile.size());
  const std::string_view rest = line.substr(number + kLine.size());
  const auto end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (end == 0 || (end < rest.size() && !rest.substr(end).starts_with(in))) return std::nullopt;
  frame.line = std::atoi(std::string(rest.substr(0, std::min<std::size_t>(end, 9))).c_str());
  if (end < rest.size()) frame.function = rest.substr(end + in.size());
  return frame;
}

std::optional<stacks::Frame> FrameOf(std::string_view line) { return ReadFrame(line, ", in "); }

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

constexpr std::string_view kNewestFirst = "(most recent call first):";

// Whether the frames of the thread that crashed follow, in a dump of faulthandler.
bool BeginsCrash(std::string_view line) {
  const std::string_view bare = Bare(line);
  return bare.ends_with(kNewestFirst) && (bare.starts_with("Current thread ") || bare.starts_with("Stack "));
}

std::optional<stacks::Frame> CrashFrameOf(std::string_view line) { return ReadFrame(Bare(line), " in "); }

// The frames of the thread that crashed, innermost first, from the last dump of faulthandler for a fatal
// error. Others are made when the program asks for them.
std::vector<stacks::Frame> CrashIn(const std::vector<std::string>& lines) {
  std::vector<stacks::Frame> frames;
  const auto fatal = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return Bare(line).starts_with("Fatal Python error: ");
  });
  const auto head = std::find_if(lines.rbegin(), fatal, BeginsCrash);
  if (fatal == lines.rend() || head == fatal) return {};
  for (auto line = head.base(); head != lines.rend() && line != lines.end(); ++line) {
    auto frame = CrashFrameOf(*line);
    if (!frame) break;
    frames.push_back(*std::move(frame));
  }
  return frames;
}

std::string OwnPlaceText(const std::vector<stacks::Frame>& frames) {
  if (std::ranges::none_of(frames, stacks::IsOfTheUser)) return {};
  return stacks::PlaceOf(frames, [](const std::string&, int) { return std::string(); }).Text();
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

// The line that ends the last traceback, with the error; its message may go on. lines.size(): none.
std::size_t EndOfTraceback(const std::vector<std::string>& lines) {
  const auto is_frame = [](const std::string& line) { return FrameOf(Bare(line)).has_value(); };
  const auto last = std::find_if(lines.rbegin(), lines.rend(), is_frame);
  if (last == lines.rend()) return lines.size();
  const auto end = std::find_if(last.base(), lines.end(), [](const std::string& line) {
    const std::string_view bare = Bare(line);
    return !bare.empty() && bare.front() != ' ';
  });
  return static_cast<std::size_t>(end - lines.begin());
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
  const std::size_t end = EndOfTraceback(lines);
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::string_view line = Bare(lines[i]);
    if (IsOfTheInterpreter(line)) return std::string(line);
    const std::string_view exception = ExceptionOf(line);
    if (exception.empty() || IsNoError(exception)) continue;
    const bool named = exception.ends_with("Error") || exception.ends_with("Exception");
    const bool traced = std::any_of(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(i),
                                    [](const std::string& before) {
                                      const std::string_view bare = Bare(before);
                                      return FrameOf(bare) || bare.starts_with(kTraceback);
                                    });
    // A line of the message that looks like an error without a name of one.
    if (traced && i > end && !named) continue;
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
  return place ? place->Text() : "";
}

std::string OwnErrorPlaceIn(const std::vector<std::string>& lines) {
  const std::vector<Traceback> found = TracebacksIn(lines);
  if (found.empty() || ErrorIn(lines).empty() || EndedAThread(lines)) return {};
  return OwnPlaceText(found.back().frames);
}

std::string OwnCrashPlaceIn(const std::vector<std::string>& lines) { return OwnPlaceText(CrashIn(lines)); }

std::vector<std::string> WithoutDumps(const std::vector<std::string>& lines) {
  constexpr int kMostFrames = 6;
  std::vector<std::string> out;
  bool dump = false;
  int frames = 0;  // that may follow
  for (const std::string& line : lines) {
    const std::string_view bare = Bare(line);
    dump = dump || bare.starts_with("Fatal Python error: ");
    const bool thread = bare.ends_with(kNewestFirst), frame = CrashFrameOf(line).has_value();
    if (dump && thread) frames = BeginsCrash(line) ? kMostFrames : 0;
    const bool beside = (thread && frames == 0) || (frame && frames-- <= 0) || bare.empty() ||
                        bare.starts_with("Extension modules: ");
    const bool native = bare.starts_with('[') && bare.ends_with(']') && bare.find("[0x") != bare.npos;
    if (!native && (!dump || !beside)) out.push_back(line);
  }
  return out;
}

bool OnlyMarks(std::string_view line) {
  const std::string_view marks = Unindented(Bare(line));
  return !marks.empty() && marks.find_first_not_of("^~ ") == std::string_view::npos;
}

bool RaisedByTheProgram(const std::vector<std::string>& lines) {
  const std::vector<Traceback> found = TracebacksIn(lines);
  if (found.empty() || found.back().frames.empty() || std::ranges::any_of(found, EndsInAWait)) return false;
  return stacks::IsOfTheUser(found.back().frames.front()) &&
         (found.back().innermost == "raise" || found.back().innermost.starts_with("raise "));
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

#include "core/stacks/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <system_error>

#include "core/base/number.h"
#include "core/base/text.h"
#include "sdk/helpers/helper.h"

namespace dtrun::stacks {
namespace {

namespace fs = std::filesystem;
using Deadline = std::chrono::steady_clock::time_point;

constexpr std::size_t kMostPrinted = 64;

// "[host:4711] [ 3] ./train(main+0x1d)[0x55d0c0de1198]", "./train() [0x401136]"
std::optional<PrintedFrame> ReadFrame(std::string_view line) {
  const auto bracket = line.rfind("[0x");
  if (bracket == line.npos || !line.ends_with(']')) return std::nullopt;
  const auto address = NumberOf<std::uint64_t>(line.substr(bracket + 3, line.size() - bracket - 4), 16);
  if (!address) return std::nullopt;
  std::string_view head = line.substr(0, bracket);
  while (head.ends_with(' ')) head.remove_suffix(1);
  PrintedFrame frame;
  frame.offset = *address;
  if (const auto open = head.rfind('('); open != head.npos && head.ends_with(')')) {
    const std::string_view inside = head.substr(open + 1, head.size() - open - 2);
    const auto plus = inside.rfind("+0x");
    const auto offset =
        plus == inside.npos ? std::nullopt : NumberOf<std::uint64_t>(inside.substr(plus + 3), 16);
    if (offset) frame.symbol = inside.substr(0, plus), frame.offset = *offset;
    head = head.substr(0, open);
  }
  if (const auto before = head.rfind("] "); before != head.npos) head.remove_prefix(before + 2);
  frame.module = head;
  const bool path = head.find('/') != head.npos || head.starts_with("linux-vdso");
  return path ? std::optional(std::move(frame)) : std::nullopt;
}

// A word that addr2line takes for an option or a file is none.
bool MayBeAsked(std::string_view symbol) {
  return symbol.empty() || IsLetterOrDigit(symbol.front()) || symbol.front() == '_';
}

struct Tool {
  std::string program;
  Deadline deadline;

  std::string Ask(std::vector<std::string> arguments) const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (program.empty() || left.count() <= 0) return {};
    arguments.insert(arguments.begin(), program);
    const helpers::Answer answer =
        helpers::Ask({.command = std::move(arguments), .with_errors = true, .patience = left});
    return answer.succeeded() ? answer.text : "";
  }
};

Tool Find(const std::vector<const char*>& names, const std::string& path, Deadline deadline) {
  std::string program;
  for (const char* const name : names)
    if (program.empty()) program = helpers::Find(name, path);
  return {std::move(program), deadline};
}

// Code of neither a library nor the program itself: a plugin, the interpreter of a script.
bool IsOfAnother(const NativeFrame& frame) {
  const std::string_view name = FileName(frame.module);
  return name == "python" || name.starts_with("python3") || name.starts_with("libdtrun_backend_") ||
         name.starts_with("libdtrun_device_") || name.starts_with("libdtrun_launcher_");
}

// Whether the place is known from here on: the frame is none of a library. Rust and headers have theirs in
// the program.
bool IsDecisive(const NativeFrame& frame) {
  const bool of_rust = frame.file.starts_with("/rustc/") || frame.file.starts_with("library/std/");
  const bool of_library = IsLibrary(frame.module) || of_rust || IsOfHeader(frame);
  return IsOfAnother(frame) || frame.module.empty() || !of_library;
}

// Function, file and line of what was printed, by the module's debug information.
NativeFrame LookUp(const PrintedFrame& printed, bool interrupted, const fs::path& folder, const Tool& tool) {
  NativeFrame frame;
  frame.module = printed.module.front() == '/' || printed.module.starts_with("linux-vdso")
                     ? printed.module
                     : (folder / printed.module).lexically_normal().string();
  if (!printed.symbol.empty()) frame.function = WithoutArguments(printed.symbol);
  if (IsLibrary(frame.module) || !MayBeAsked(printed.symbol)) return frame;
  // The address after a call is the next line's, perhaps.
  const std::uint64_t at = printed.offset - (interrupted || printed.offset == 0 ? 0 : 1);
  const std::string address =
      printed.symbol.empty() ? fmt::format("{:#x}", at) : fmt::format("{}+{:#x}", printed.symbol, at);
  const std::string answer = tool.Ask({"-f", "-C", "-e", frame.module, address});
  const std::vector<std::string_view> lines = LinesOf(answer);
  if (lines.size() < 2) return frame;
  if (lines[0] != "??" && lines[0].find(": ") == std::string_view::npos)
    frame.function = WithoutArguments(lines[0]);
  const auto colon = lines[1].find(':');
  if (colon != lines[1].npos && !lines[1].starts_with("??")) {
    frame.file = Printable(lines[1].substr(0, colon));
    frame.line = std::atoi(std::string(lines[1].substr(colon + 1, 9)).c_str());
  }
  return frame;
}

std::vector<NativeFrame> FramesOfPrinted(const Crash& crash, const Tool& tool) {
  std::vector<NativeFrame> frames;
  for (const PrintedFrame& printed : PrintedStack(LinesOf(crash.printed), crash.pid, crash.signal)) {
    frames.push_back(LookUp(printed, frames.empty(), crash.folder, tool));
    if (IsDecisive(frames.back())) break;
  }
  return frames;
}

// gdb's table of mappings, as in /proc/PID/maps.
std::string MapsOf(std::string_view text) {
  std::string maps;
  for (std::string_view line : LinesOf(text)) {
    const auto path = line.find(" /");
    while (line.starts_with(' ')) line.remove_prefix(1);
    const auto space = line.find(' '), second = line.find("0x", 2);
    if (path == line.npos || !line.starts_with("0x") || space == line.npos || second == line.npos) continue;
    const std::string_view begin = line.substr(2, space - 2), rest = line.substr(second + 2);
    maps +=
        fmt::format("{}-{} {}\n", begin, rest.substr(0, rest.find(' ')), line.substr(line.rfind(" /") + 1));
  }
  return maps;
}

// Of the thread that crashed, which a core file has first.
std::vector<NativeFrame> FramesOfCore(const Crash& crash, const Tool& tool) {
  const std::string core = crash.core.string();
  if (tool.program.ends_with("eu-stack")) {
    const std::string text = tool.Ask({"-s", "-m", "-i", "-n", "64", "--core=" + core});
    if (!text.starts_with(fmt::format("PID {} ", crash.pid))) return {};
    const auto second = text.find("\nTID ", text.find("\nTID ") + 1);
    std::vector<NativeFrame> frames = FramesOfEuStack(text.substr(0, second), kAllThreads);
    for (NativeFrame& frame : frames)  // libraries have their SONAME
      if (!frame.module.empty() && frame.module.find('/') == frame.module.npos)
        frame.module = "/lib/" + frame.module;
    return frames;
  }
  std::vector<std::string> options = {"-batch", "-nx", "-iex", "set auto-load no", "-iex", "set width 0"};
  options.insert(options.end(), {"-iex", "set print frame-arguments none", "-iex",
                                 "set print frame-info location-and-address"});
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), options.begin(), options.end());
    return tool.Ask(std::move(more));
  };
  constexpr std::string_view kBegin = "Core was generated by `";
  const std::string head = with({"-c", core});
  const auto at = head.find(kBegin);
  if (at == head.npos) return {};
  const std::string command =
      head.substr(at + kBegin.size(), head.find('\'', at + kBegin.size()) - at - kBegin.size());
  const fs::path program = crash.folder / command.substr(0, command.find(' '));
  const std::string text = with({program.string(), core, "-ex", "info inferiors", "-ex", "info proc mappings",
                                 "-ex", "thread apply 1 backtrace 64"});
  if (text.find(fmt::format("process {} ", crash.pid)) == text.npos &&
      text.find(fmt::format("process {}\n", crash.pid)) == text.npos)
    return {};
  return FramesOfGdb(text, kAllThreads, MapsOf(text));
}

// Names of files and functions may be long.
std::string Shortened(std::string text) {
  constexpr std::size_t kMost = 400;
  return text.size() <= kMost ? text : Printable(std::string_view(text).substr(0, kMost));
}

// "in step at solver.c:42" of the innermost frame that is none of a library; empty if it has no name.
std::string PlaceIn(const std::vector<NativeFrame>& frames) {
  // A handler may have ended the process: what it interrupted is behind the return from the signal.
  const auto is_return = [](const NativeFrame& frame) {
    return frame.function == "__restore_rt" || frame.function == "restore_rt" ||
           frame.function == "<signal handler called>";
  };
  auto first = std::ranges::find_if(frames, is_return);
  first = first == frames.end() ? frames.begin() : first + 1;
  if (first != frames.end() && first->module.empty()) return {};  // a jump to no code: its caller is not sure
  const auto own = std::find_if(first, frames.end(), IsDecisive);
  if (own == frames.end() || own->function.empty() || IsOfAnother(*own)) return {};
  const std::string where = own->line > 0 ? fmt::format(" at {}:{}", FileName(own->file), own->line) : "";
  return Shortened("in " + own->function + where);
}

}  // namespace

std::vector<PrintedFrame> PrintedStack(const std::vector<std::string_view>& lines, pid_t pid, int signal) {
  const std::string of_dtrun = fmt::format("dtrun: process {} got signal {};", pid, signal);
  const std::string of_open_mpi = fmt::format(":{:05}] ", pid), number = fmt::format("({})", signal);
  const std::string of_ucx = fmt::format("] Caught signal {} (", signal),
                    ucx_pid = fmt::format(":{:<5}:", pid);
  std::vector<PrintedFrame> frames;
  enum class By { kNone, kDtrun, kOpenMpi, kUcx } by = By::kNone;  // the printer of frames that may follow
  const auto begins = [&](By printer) {
    by = printer;
    frames.clear();
  };
  for (const std::string_view line : lines) {
    const auto begin = line.starts_with('[') ? line.find(of_open_mpi) : line.npos;
    const std::string_view said =
        begin == line.npos ? std::string_view() : line.substr(begin + of_open_mpi.size());
    const auto caught = line.starts_with('[') ? line.find(of_ucx) : line.npos;
    if (line.starts_with(of_dtrun)) {
      begins(By::kDtrun);
    } else if (said.starts_with("Signal: ")) {
      begins(said.ends_with(number) ? By::kOpenMpi : By::kNone);
    } else if (caught != line.npos && line.substr(0, caught).find(ucx_pid) != line.npos) {
      begins(By::kUcx);
    } else {
      const std::string_view numbered =
          line.substr(std::min(line.find_first_not_of(" 0123456789"), line.size()));
      auto frame = by == By::kNone      ? std::nullopt
                   : by == By::kDtrun   ? ReadFrame(line)
                   : by == By::kOpenMpi ? ReadFrame(said)
                                        : ReadFrame(numbered);
      if (frame && frames.size() < kMostPrinted) frames.push_back(*std::move(frame));
      if (!frame && by == By::kDtrun) by = By::kNone;
    }
  }
  // UCX's handler, and then the return from the signal, in the C library.
  const auto handler = [](const PrintedFrame& frame) {
    return frame.module.find("/libucs.") != std::string::npos;
  };
  frames.erase(frames.begin(), std::ranges::find_if_not(frames, handler));
  if (!frames.empty()) frames.erase(frames.begin());
  return frames;
}

fs::path CoreFile(std::string_view pattern, const fs::path& folder, pid_t pid, fs::file_time_type since) {
  while (pattern.ends_with('\n')) pattern.remove_suffix(1);
  if (pattern.empty() || pattern.front() == '|') return {};
  const fs::path place = folder / pattern;
  const std::string name = place.filename().string(), prefix = name.substr(0, name.find('%'));
  const bool has_pid = name.find("%p") != name.npos || name.find("%P") != name.npos;
  std::error_code error;
  fs::path found;
  fs::file_time_type newest = since;
  for (fs::directory_iterator one(place.parent_path(), error), end; !error && one != end;
       one.increment(error)) {
    const std::string file = one->path().filename().string();
    const bool ours = file.find(std::to_string(pid), prefix.size()) != file.npos;
    if (!file.starts_with(prefix) || (has_pid && !ours) || (!ours && file != name && prefix == name))
      continue;
    std::error_code unknown;
    const fs::file_time_type written = one->last_write_time(unknown);
    if (unknown || written < newest || !one->is_regular_file(unknown)) continue;
    newest = written;
    found = one->path();
  }
  return found;
}

std::string CrashPlace(const Crash& crash, const std::string& path, Deadline deadline) {
  const Tool lines = Find({"eu-addr2line", "addr2line"}, path, deadline);
  const auto printed = FramesOfPrinted(crash, lines);
  if (!printed.empty()) return PlaceIn(printed);
  if (!crash.core.empty()) return PlaceIn(FramesOfCore(crash, Find({"eu-stack", "gdb"}, path, deadline)));
  const auto address = crash.logged ? AddressIn(crash.program, *crash.logged) : std::nullopt;
  if (!address) return {};
  return PlaceIn({LookUp({crash.program.string(), {}, *address}, true, {}, lines)});
}

}  // namespace dtrun::stacks

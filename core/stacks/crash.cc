#include "core/stacks/crash.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

#include "core/base/text.h"
#include "sdk/helpers/helper.h"

namespace dtrun::stacks {
namespace {

namespace fs = std::filesystem;
using Deadline = std::chrono::steady_clock::time_point;

constexpr std::size_t kMostPrinted = 64;
constexpr int kMostLookedUp = 4;  // of a stack; each is a program that runs

std::optional<std::uint64_t> Hex(std::string_view text) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// "[host:4711] [ 3] ./train(main+0x1d)[0x55d0c0de1198]", "./train() [0x401136]"
std::optional<PrintedFrame> ReadFrame(std::string_view line) {
  const auto bracket = line.rfind("[0x");
  if (bracket == line.npos || !line.ends_with(']')) return std::nullopt;
  const auto address = Hex(line.substr(bracket + 3, line.size() - bracket - 4));
  if (!address) return std::nullopt;
  std::string_view head = line.substr(0, bracket);
  while (head.ends_with(' ')) head.remove_suffix(1);
  PrintedFrame frame;
  frame.offset = *address;
  if (const auto open = head.rfind('('); open != head.npos && head.ends_with(')')) {
    const std::string_view inside = head.substr(open + 1, head.size() - open - 2);
    const auto plus = inside.rfind("+0x");
    const auto offset = plus == inside.npos ? std::nullopt : Hex(inside.substr(plus + 3));
    if (offset) frame.symbol = inside.substr(0, plus), frame.offset = *offset;
    head = head.substr(0, open);
  }
  if (const auto before = head.rfind("] "); before != head.npos) head.remove_prefix(before + 2);
  frame.module = head;
  const bool path = head.find('/') != head.npos || head.starts_with("linux-vdso");
  return path ? std::optional(std::move(frame)) : std::nullopt;
}

bool IsCLibrary(const PrintedFrame& frame) {
  const std::string_view name = FileName(frame.module);
  return name.starts_with("libc.so") || name.starts_with("libc-2.") || name.starts_with("libpthread");
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

// Function, file and line of what was printed, by the module's debug information.
NativeFrame LookUp(const PrintedFrame& printed, bool interrupted, const fs::path& folder, const Tool& tool) {
  NativeFrame frame;
  frame.module = printed.module.front() == '/' || printed.module.starts_with("linux-vdso")
                     ? printed.module
                     : (folder / printed.module).lexically_normal().string();
  frame.function = printed.symbol;
  if (IsLibrary(frame.module)) return frame;
  // The address after a call is the next line's, perhaps.
  const std::uint64_t at = printed.offset - (interrupted || printed.offset == 0 ? 0 : 1);
  const std::string address =
      printed.symbol.empty() ? fmt::format("{:#x}", at) : fmt::format("{}+{:#x}", printed.symbol, at);
  const std::string answer = tool.Ask({"-f", "-C", "-e", frame.module, address});
  const std::vector<std::string_view> lines = LinesOf(answer);
  if (lines.size() < 2) return frame;
  if (lines[0] != "??") frame.function = Printable(lines[0].substr(0, lines[0].find('(')));
  const auto colon = lines[1].find(':');
  if (colon != lines[1].npos && !lines[1].starts_with("??")) {
    frame.file = Printable(lines[1].substr(0, colon));
    frame.line = std::atoi(std::string(lines[1].substr(colon + 1, 9)).c_str());
  }
  return frame;
}

std::vector<NativeFrame> FramesOfPrinted(const Crash& crash, const Tool& tool) {
  const std::vector<PrintedFrame> printed = PrintedStack(LinesOf(crash.printed));
  std::vector<NativeFrame> frames;
  int looked_up = 0;
  for (std::size_t i = 0; i < printed.size() && looked_up < kMostLookedUp; ++i) {
    frames.push_back(LookUp(printed[i], i == 0, crash.folder, tool));
    if (PlaceOf(frames)) break;
    looked_up += IsLibrary(frames.back().module) ? 0 : 1;
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
    const auto second = text.find("\nTID ", text.find("\nTID ") + 1);
    std::vector<NativeFrame> frames = FramesOfEuStack(text.substr(0, second), kAllThreads);
    for (NativeFrame& frame : frames)  // libraries have their SONAME
      if (frame.module.find('/') == frame.module.npos) frame.module = "/lib/" + frame.module;
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
  const std::string text =
      with({program.string(), core, "-ex", "info proc mappings", "-ex", "thread apply 1 backtrace 64"});
  return FramesOfGdb(text, kAllThreads, MapsOf(text));
}

std::string TextOf(const NativePlace& place) {
  const std::string what = place.what.empty() || place.where.empty() ? place.within : place.what;
  return "in " + what + (place.where.empty() ? "" : " at " + place.where);
}

// What the C library calls between abort and the end is nothing to the user.
std::vector<NativeFrame> WithoutAbort(std::vector<NativeFrame> frames) {
  const auto is_abort = [](const NativeFrame& frame) {
    return frame.function == "abort" || frame.function == "__GI_abort";
  };
  const auto last = std::ranges::find_if(frames, is_abort);
  if (last != frames.end()) frames.erase(frames.begin(), last);
  return frames;
}

}  // namespace

std::vector<PrintedFrame> PrintedStack(const std::vector<std::string_view>& lines) {
  std::vector<PrintedFrame> frames;
  bool over = true;
  for (const std::string_view line : lines) {
    auto frame = ReadFrame(line);
    if (frame && over) frames.clear();
    over = !frame;
    if (frame && frames.size() < kMostPrinted) frames.push_back(*std::move(frame));
  }
  // A handler's own stack begins with the return from the signal, in the C library.
  if (frames.size() > 1 && IsCLibrary(frames[0]) && frames[0].symbol.empty()) frames.erase(frames.begin());
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
  auto place =
      PlaceOf(WithoutAbort(FramesOfPrinted(crash, Find({"eu-addr2line", "addr2line"}, path, deadline))));
  if ((!place || place->where.empty()) && !crash.core.empty()) {
    auto of_core = PlaceOf(WithoutAbort(FramesOfCore(crash, Find({"eu-stack", "gdb"}, path, deadline))));
    if (of_core) place = std::move(of_core);
  }
  return place ? TextOf(*place) : "";
}

}  // namespace dtrun::stacks

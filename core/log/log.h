// Diagnostics: what root, agents, libdtrun and plugins do, for those who look for a fault in them. What people read
// of a job (header, verdict, the ranks' output) is not written here.
//
// One log for each process, over spdlog; it lives as long as the process, since plugins' threads may write after
// main has returned. Each line has a time, the host, the rank in a rank, a level and a room. It goes to standard
// error, or where WriteTo says, and into a file once KeepIn names one. All functions: any thread. Writing never waits
// for a slow reader of standard error: what does not fit is dropped, and the next line that fits says how many.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log/levels.h"

namespace dtrun::log {

// What the variables ask for.
struct Options {
  Levels levels;
  bool json = false;  // each line is a JSON object: time, host, rank, level, room, text
};
// The values of DTRUN_LOG and DTRUN_LOG_FORMAT ("text", "json"); null or empty: the default. An error names the
// variable and what is wrong with its value.
Result<Options> ParseOptions(const char* levels, const char* format);

// What is to be told of the variables' values: an error of ParseOptions, as a note that the variable has no effect, and
// UnknownRooms.
std::vector<std::string> WrongVariables(const char* levels, const char* format, const std::vector<std::string>& plugins);
// Of this process's environment.
Result<Options> OptionsOfEnvironment();

// As the last Start said.
Options Current();

// Replaces what the log was told before; until the first call it keeps warnings and errors, without host and rank.
void Start(const Options& options, const std::string& host, std::optional<int> rank);

// From now on whole lines go to `sink`, each with its line feed, in place of standard error; empty: back to it. The
// sink may not write to the log. It is given what was written before, at most 1,000 lines, if `replay` is set.
void WriteTo(std::function<void(std::string_view line)> sink, bool replay = false);

// Also keeps the lines in this file, those written before too (at most 1,000); it is made with the first line, and
// at 10 MiB becomes NAME.1.log, and that NAME.2.log. An empty path ends it. A file that cannot be written is told on standard error.
void KeepIn(const std::filesystem::path& file);

// Passes on a line that another host's log has made.
void PassOn(std::string_view line);

namespace internal {
extern std::atomic<Level> lowest;
bool Keeps(std::string_view room, Level level);
void Write(std::string_view room, Level level, std::string_view text);
}  // namespace internal

// The lowest level that any room keeps.
inline Level LowestKept() { return internal::lowest.load(std::memory_order_relaxed); }

// A part of dtrun that writes diagnostics: a folder of core, or a plugin. Nothing is formatted that is not kept, and
// then a call costs one load.
class Room {
 public:
  constexpr explicit Room(std::string_view name) : name_(name) {}  // which outlives it

  bool Keeps(Level level) const {
    return level >= LowestKept() && internal::Keeps(name_, level);
  }
  // Line feeds in the text become spaces. errno stays as it is.
  void Write(Level level, std::string_view text) const {
    if (Keeps(level)) internal::Write(name_, level, text);
  }
  template <class... Args>
  void Debug(fmt::format_string<Args...> text, Args&&... args) const {
    if (Keeps(Level::kDebug)) internal::Write(name_, Level::kDebug, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void Info(fmt::format_string<Args...> text, Args&&... args) const {
    if (Keeps(Level::kInfo)) internal::Write(name_, Level::kInfo, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  std::string_view name_;
};

}  // namespace dtrun::log

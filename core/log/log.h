// Diagnostics of the root, agents, libdtrun and plugins, for debugging. The user's output of a job (header,
// verdict, ranks' output) is not logged here.
//
// One log per process, over spdlog. It lives as long as the process, because plugins' threads may write after
// main has returned. Each line has a time, the host, the rank (in ranks), a level and a room. Lines go to
// standard error or where WriteTo directs them, and also to a file after KeepIn. All functions: any thread.
// Writing never blocks on a slow reader of standard error: lines that do not fit are dropped, and the next
// line that fits reports their number.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/fd.h"
#include "core/base/result.h"

namespace dtrun::log {

// ---- the diagnostics to keep; values and pure functions: levels.cc ----

enum class Level {
  kDebug = 1,
  kInfo,
  kWarn,
  kError,
  kOff
};  // ascending; the first four as DTRUN_LOG_* of the ABI

std::string_view Name(Level level);  // "debug", "info", "warn", "error", "off"

struct Levels {
  Level others = Level::kWarn;  // for rooms that are not in `rooms`
  std::map<std::string, Level, std::less<>> rooms = {};

  Level Of(std::string_view room) const;
  Level Lowest() const;
  bool operator==(const Levels&) const = default;
};

// "info", "network=debug", "info,network=debug,gloo=off". Spaces around a part are ignored; an empty text
// keeps warnings and errors. The error names the invalid part. Any word is accepted as a room: see
// UnknownRooms.
Result<Levels> ParseLevels(std::string_view text);
std::string ToText(const Levels& levels);  // in the syntax of ParseLevels

// The value of a variable as errors show it: at most 60 bytes, control characters escaped.
std::string Shortened(std::string_view text);

// A sentence for each room in `levels` that is neither a room of core nor one of `plugins`.
std::vector<std::string> UnknownRooms(const Levels& levels, const std::vector<std::string>& plugins);

// ---- the log ----

// The settings from the variables.
struct Options {
  Levels levels;
  bool json = false;  // one JSON object per line: time, host, rank, level, part, text
};
// Parses DTRUN_LOG and DTRUN_LOG_FORMAT ("text", "json"); null or empty: the default. An error names the
// variable and the invalid value.
Result<Options> ParseOptions(const char* levels, const char* format);

// Warnings about the variables' values: an error of ParseOptions, as a note that the variable has no effect,
// and UnknownRooms.
std::vector<std::string> WrongVariables(const char* levels, const char* format,
                                        const std::vector<std::string>& plugins);
// The options in this process's environment. An invalid value counts as unset; WrongVariables reports it.
Options OptionsOfEnvironment();

// The options of the last Start.
Options Current();

// Sets options, host and rank. Before the first call the log keeps warnings and errors, without host and
// rank.
void Start(const Options& options, const std::string& host, std::optional<int> rank);

// Sends whole lines, each with its newline, to `sink` instead of standard error; empty: back to standard
// error. The sink must not write to the log. With `replay` it first gets the earlier lines, at most 1,000.
void WriteTo(std::function<void(std::string_view line)> sink, bool replay = false);

// Also writes the lines to dtrun.log in this open folder, including at most 1,000 earlier ones. The file is
// created with the first line and this mode, and replaces any file of that name. At 10 MiB it is renamed to
// dtrun.1.log, and dtrun.1.log to dtrun.2.log. `shown` is the folder's name for errors. No folder: stops it.
// After a write error the log goes on without the file and says so.
void KeepIn(UniqueFd folder, const std::filesystem::path& shown, mode_t mode);

// Forwards a line from another host's log.
void PassOn(std::string_view line);

namespace internal {
extern std::atomic<Level> lowest;
bool Keeps(std::string_view room, Level level);
void Write(std::string_view room, Level level, std::string_view text);
}  // namespace internal

// The lowest level that any room keeps.
inline Level LowestKept() { return internal::lowest.load(std::memory_order_relaxed); }

// A part of dtrun that writes diagnostics: a folder of core, or a plugin. A message that is not kept is not
// formatted and costs one load.
class Room {
 public:
  constexpr explicit Room(std::string_view name) : name_(name) {}  // must outlive the room

  bool Keeps(Level level) const { return level >= LowestKept() && internal::Keeps(name_, level); }
  // Newlines in the text become spaces. Preserves errno.
  void Write(Level level, std::string_view text) const {
    if (Keeps(level)) internal::Write(name_, level, text);
  }
  template <class... Args>
  void Debug(fmt::format_string<Args...> text, Args&&... args) const {
    if (Keeps(Level::kDebug))
      internal::Write(name_, Level::kDebug, fmt::format(text, std::forward<Args>(args)...));
  }
  template <class... Args>
  void Info(fmt::format_string<Args...> text, Args&&... args) const {
    if (Keeps(Level::kInfo))
      internal::Write(name_, Level::kInfo, fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  std::string_view name_;
};

}  // namespace dtrun::log

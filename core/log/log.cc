#include "core/log/log.h"

#include <poll.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "core/base/json.h"
#include "core/base/own_file.h"
#include "core/base/text.h"

namespace dtrun::log {
namespace internal {
std::atomic<Level> lowest{Level::kWarn};
}  // namespace internal

namespace {

constexpr std::size_t kRemembered = 1000;  // lines
constexpr std::size_t kFileBytes = 10u << 20;
// The file that grows, and what it becomes; the last one is replaced.
constexpr const char* kNames[] = {"dtrun.log", "dtrun.1.log", "dtrun.2.log"};
constexpr std::size_t kMostBytes = 3500;  // of a text, so that most lines fit into one write to a pipe

// Gives whole lines to the sinks.
template <class Sink>
void Put(Sink& sink, std::string_view line) {
  sink.log(spdlog::details::log_msg({}, spdlog::level::info, {line.data(), line.size()}));
}

template <class Sink>
void TakesWholeLines(Sink& sink) {
  sink.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::local, ""));
}

// Of the process.
struct Log {
  static Log& Get() {
    static auto* log = new Log;  // plugins' threads may log after main has returned
    return *log;
  }

  Log() : remembered(std::make_unique<spdlog::sinks::ringbuffer_sink_st>(kRemembered)) {
    TakesWholeLines(*remembered);
    time = std::make_unique<spdlog::pattern_formatter>("%Y-%m-%d %H:%M:%S.%e",
                                                       spdlog::pattern_time_type::local, "");
  }

  std::string Line(std::string_view room, Level level, std::string_view text) const {
    spdlog::memory_buf_t now;
    time->format(spdlog::details::log_msg({}, spdlog::level::info, {}), now);
    std::string one(text.substr(0, kMostBytes));
    if (text.size() > one.size()) one += fmt::format("... ({} bytes more)", text.size() - one.size());
    for (char& c : one) {
      if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    }
    one = Printable(one);  // a plugin's, which a terminal would obey
    if (json) {
      Json object{{"time", std::string(now.data(), now.size())}, {"host", host}};
      if (rank) object["rank"] = *rank;
      object.update(Json{{"level", Name(level)}, {"part", room}, {"text", one}});
      return JsonLine(object) + "\n";
    }
    std::string line(now.data(), now.size());
    if (!host.empty()) line += " " + host;
    if (rank) line += fmt::format(" rank {}", *rank);
    return fmt::format("{} {} {}: {}\n", line, Name(level), room.empty() ? "dtrun" : room, one);
  }

  void Distribute(std::string_view line) {
    Show(line);
    if (folder && !file) Open();
    if (file) Keep(line);
    Put(*remembered, line);
  }

  void Show(std::string_view line) {
    if (sink) return sink(line);
    WriteToStandardError(line);
  }

  void Open() {
    if (!Make()) return;
    for (const std::string& line : remembered->last_formatted()) {
      if (file) Keep(line);
    }
  }

  // spdlog's own file sink would follow links and wait for a pipe.
  bool Make() {
    Result<UniqueFd> made = MakeOwnFileAt(folder.get(), shown / kNames[0], mode);
    if (!made) {
      GiveUpFile(made.error().text);
      return false;
    }
    file = *std::move(made);
    size = 0;
    return true;
  }

  void Keep(std::string_view line) {
    if (size + line.size() > kFileBytes) {
      for (std::size_t i = std::size(kNames) - 1; i > 0; --i)
        (void)::renameat(folder.get(), kNames[i - 1], folder.get(), kNames[i]);
      if (!Make()) return;
    }
    size += line.size();
    while (!line.empty()) {
      const ssize_t written = ::write(file.get(), line.data(), line.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        return GiveUpFile(
            Error::System(fmt::format("cannot write '{}'", (shown / kNames[0]).string()), errno).text);
      line.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  // The log goes on without the file.
  void GiveUpFile(const std::string& why) {
    folder.Reset();
    file.Reset();
    Show(Line("job", Level::kError, "the log is no longer kept in a file: " + why));
  }

  // poll reports a pipe as writable if at least PIPE_BUF bytes fit (pipe(7)), so no piece of a line blocks. A
  // line for which there is no room is dropped, or cut.
  void WriteToStandardError(std::string_view line) {
    std::string with_loss;
    if (dropped != 0) {
      with_loss =
          fmt::format("dtrun: {} lines of the log were dropped, as standard error was full\n", dropped);
      with_loss += line;
      line = with_loss;
    }
    const std::uint64_t dropped_before = std::exchange(dropped, 0);
    while (!line.empty()) {
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) {
        dropped = dropped_before + 1;
        return;
      }
      const ssize_t written =
          ::write(STDERR_FILENO, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return;  // the reader is gone; there is nowhere to report that
      line.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  std::mutex mutex;
  Levels levels;
  bool json = false;
  std::string host;
  std::optional<int> rank;
  std::unique_ptr<spdlog::formatter> time;
  std::function<void(std::string_view)> sink;
  std::unique_ptr<spdlog::sinks::ringbuffer_sink_st> remembered;
  UniqueFd folder;              // of the file; none: no file is kept
  std::filesystem::path shown;  // the folder in errors
  mode_t mode = 0;              // of the file
  UniqueFd file;                // none: not created yet
  std::size_t size = 0;         // of the file, in bytes
  std::uint64_t dropped = 0;
};

}  // namespace

namespace internal {

bool Keeps(std::string_view room, Level level) {
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  return level >= log.levels.Of(room);
}

void Write(std::string_view room, Level level, std::string_view text) {
  const int saved_errno = errno;
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  log.Distribute(log.Line(room, level, text));
  errno = saved_errno;
}

}  // namespace internal

Result<Options> ParseOptions(const char* levels, const char* format) {
  Options options;
  Result<Levels> parsed = ParseLevels(levels == nullptr ? "" : levels);
  if (!parsed) return Error{parsed.error().code, "DTRUN_LOG: " + parsed.error().text};
  options.levels = *std::move(parsed);
  const std::string_view form = format == nullptr ? "" : format;
  if (!form.empty() && form != "text" && form != "json")
    return Error::Of(DTRUN_INVALID_ARGUMENT, "DTRUN_LOG_FORMAT is '{}'; expected text or json",
                     Shortened(form));
  options.json = form == "json";
  return options;
}

std::vector<std::string> WrongVariables(const char* levels, const char* format,
                                        const std::vector<std::string>& plugins) {
  const Result<Options> options = ParseOptions(levels, format);
  if (!options) return {options.error().text + "; the default applies"};
  std::vector<std::string> told = UnknownRooms(options->levels, plugins);
  for (std::string& one : told) one = "DTRUN_LOG: " + one;
  return told;
}

Options OptionsOfEnvironment() {
  const char* const levels = std::getenv("DTRUN_LOG");
  const char* const format = std::getenv("DTRUN_LOG_FORMAT");
  Options options;
  if (const Result<Options> one = ParseOptions(levels, nullptr)) options.levels = one->levels;
  if (const Result<Options> one = ParseOptions(nullptr, format)) options.json = one->json;
  return options;
}

void Start(const Options& options, const std::string& host, std::optional<int> rank) {
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  log.levels = options.levels;
  internal::lowest = log.levels.Lowest();
  log.json = options.json;
  log.host = host;
  log.rank = rank;
  const auto zone = log.json ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local;
  const char* const form = log.json ? "%Y-%m-%dT%H:%M:%S.%fZ" : "%Y-%m-%d %H:%M:%S.%e";
  log.time = std::make_unique<spdlog::pattern_formatter>(form, zone, "");
}

Options Current() {
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  return {log.levels, log.json};
}

void WriteTo(std::function<void(std::string_view)> sink, bool replay) {
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  log.sink = std::move(sink);
  if (!replay) return;
  for (const std::string& line : log.remembered->last_formatted()) log.Show(line);
}

void KeepIn(UniqueFd folder, const std::filesystem::path& shown, mode_t mode) {
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  log.folder = std::move(folder);
  log.shown = shown;
  log.mode = mode;
  log.file.Reset();
  if (log.folder && !log.remembered->last_raw(1).empty()) log.Open();
}

void PassOn(std::string_view line) {
  Log& log = Log::Get();
  const std::lock_guard lock(log.mutex);
  log.Distribute(line);
}

}  // namespace dtrun::log

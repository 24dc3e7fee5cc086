#include "core/log/log.h"

#include <poll.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/json.h"
#include "core/base/text.h"

namespace dtrun::log {
namespace internal {
std::atomic<Level> lowest{Level::kWarn};
}  // namespace internal

namespace {

constexpr std::size_t kRemembered = 1000;  // lines
constexpr std::size_t kFileBytes = 10u << 20;
constexpr std::size_t kFilesBefore = 2;   // besides the current one
constexpr std::size_t kMostBytes = 3500;  // of a text, so that its line fits into one write to a pipe

spdlog::level::level_enum ForSpdlog(Level level) {
  switch (level) {
    case Level::kDebug: return spdlog::level::debug;
    case Level::kInfo: return spdlog::level::info;
    case Level::kWarn: return spdlog::level::warn;
    case Level::kError: return spdlog::level::err;
    case Level::kOff: break;
  }
  return spdlog::level::off;
}

// Gives whole lines to the sinks.
template <class Sink>
void Put(Sink& sink, std::string_view line) {
  sink.log(spdlog::details::log_msg({}, spdlog::level::info, {line.data(), line.size()}));
}

template <class Sink>
void TakesWholeLines(Sink& sink) {
  sink.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::local, ""));
}

class Log {
 public:
  static Log& Get() {
    static auto* log = new Log;  // plugins' threads may log after main has returned
    return *log;
  }

  void Start(const Options& options, const std::string& host, std::optional<int> rank) {
    const std::lock_guard lock(mutex_);
    levels_ = options.levels;
    internal::lowest = levels_.Lowest();
    json_ = options.json;
    host_ = host;
    rank_ = rank;
    const auto time = json_ ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local;
    time_ =
        spdlog::pattern_formatter(json_ ? "%Y-%m-%dT%H:%M:%S.%fZ" : "%Y-%m-%d %H:%M:%S.%e", time, "").clone();
  }

  Options Current() {
    const std::lock_guard lock(mutex_);
    return {levels_, json_};
  }

  bool Keeps(std::string_view room, Level level) {
    const std::lock_guard lock(mutex_);
    return level >= levels_.Of(room);
  }

  void Write(std::string_view room, Level level, std::string_view text) {
    const std::lock_guard lock(mutex_);
    Distribute(Line(room, level, text));
  }

  void PassOn(std::string_view line) {
    const std::lock_guard lock(mutex_);
    Distribute(line);
  }

  void WriteTo(std::function<void(std::string_view)> sink, bool replay) {
    const std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
    if (!replay) return;
    for (const std::string& line : remembered_->last_formatted()) Show(line);
  }

  void KeepIn(const std::filesystem::path& file) {
    const std::lock_guard lock(mutex_);
    path_ = file;
    file_.reset();
    if (!path_.empty() && !remembered_->last_raw(1).empty()) Open();
  }

 private:
  Log() : remembered_(std::make_unique<spdlog::sinks::ringbuffer_sink_st>(kRemembered)) {
    TakesWholeLines(*remembered_);
    time_ = std::make_unique<spdlog::pattern_formatter>("%Y-%m-%d %H:%M:%S.%e",
                                                        spdlog::pattern_time_type::local, "");
  }

  std::string Line(std::string_view room, Level level, std::string_view text) const {
    spdlog::memory_buf_t now;
    time_->format(spdlog::details::log_msg({}, ForSpdlog(level), {}), now);
    std::string one(text.substr(0, kMostBytes));
    if (text.size() > one.size()) one += fmt::format("... ({} bytes more)", text.size() - one.size());
    for (char& c : one) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    if (json_) {
      Json json{{"time", std::string(now.data(), now.size())}, {"host", host_}};
      if (rank_) json["rank"] = *rank_;
      json.update(Json{{"level", Name(level)}, {"room", room}, {"text", one}});
      return JsonLine(json) + "\n";
    }
    std::string line(now.data(), now.size());
    if (!host_.empty()) line += " " + host_;
    if (rank_) line += fmt::format(" rank {}", *rank_);
    return fmt::format("{} {} {}: {}\n", line, Name(level), room.empty() ? "dtrun" : room, one);
  }

  void Distribute(std::string_view line) {
    Show(line);
    if (!path_.empty() && !file_) Open();
    if (file_) Keep(line);
    Put(*remembered_, line);
  }

  void Show(std::string_view line) {
    if (sink_) return sink_(line);
    WriteToStandardError(line);
  }

  void Open() {
    try {
      file_ =
          std::make_unique<spdlog::sinks::rotating_file_sink_st>(path_.string(), kFileBytes, kFilesBefore);
      TakesWholeLines(*file_);
    } catch (const std::exception& failure) {
      return GiveUpFile(failure);
    }
    for (const std::string& line : remembered_->last_formatted()) {
      if (file_) Keep(line);
    }
  }

  void Keep(std::string_view line) {
    try {
      Put(*file_, line);
      file_->flush();
    } catch (const std::exception& failure) {
      GiveUpFile(failure);
    }
  }

  void GiveUpFile(const std::exception& failure) {
    const std::string line =
        Line("log", Level::kError, fmt::format("'{}' cannot be written: {}", path_.string(), failure.what()));
    path_.clear();
    file_.reset();
    WriteToStandardError(line);
  }

  // poll reports a pipe as writable if at least PIPE_BUF bytes fit (pipe(7)), so writing a line never blocks.
  void WriteToStandardError(std::string_view line) {
    pollfd room{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) {
      ++dropped_;
      return;
    }
    std::string with_loss;
    if (dropped_ != 0) {
      with_loss =
          fmt::format("dtrun: {} lines of the log were dropped, as standard error was full\n", dropped_);
      with_loss += line;
      line = with_loss;
      dropped_ = 0;
    }
    while (!line.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return;  // the reader is gone; there is nowhere to report that
      line.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  std::mutex mutex_;
  Levels levels_;
  bool json_ = false;
  std::string host_;
  std::optional<int> rank_;
  std::unique_ptr<spdlog::formatter> time_;
  std::function<void(std::string_view)> sink_;
  std::unique_ptr<spdlog::sinks::ringbuffer_sink_st> remembered_;
  std::filesystem::path path_;
  std::unique_ptr<spdlog::sinks::rotating_file_sink_st> file_;  // null: not created yet
  std::uint64_t dropped_ = 0;
};

}  // namespace

namespace internal {

bool Keeps(std::string_view room, Level level) { return Log::Get().Keeps(room, level); }

void Write(std::string_view room, Level level, std::string_view text) {
  const int saved_errno = errno;
  Log::Get().Write(room, level, text);
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
    return Error{DTRUN_INVALID_ARGUMENT,
                 fmt::format("DTRUN_LOG_FORMAT is '{}'; expected text or json", form)};
  options.json = form == "json";
  return options;
}

std::vector<std::string> WrongVariables(const char* levels, const char* format,
                                        const std::vector<std::string>& plugins) {
  const Result<Options> options = ParseOptions(levels, format);
  if (!options) return {options.error().text + "; warnings and errors are logged as text"};
  std::vector<std::string> told = UnknownRooms(options->levels, plugins);
  for (std::string& one : told) one = "DTRUN_LOG: " + one;
  return told;
}

Result<Options> OptionsOfEnvironment() {
  return ParseOptions(std::getenv("DTRUN_LOG"), std::getenv("DTRUN_LOG_FORMAT"));
}

void Start(const Options& options, const std::string& host, std::optional<int> rank) {
  Log::Get().Start(options, host, rank);
}

Options Current() { return Log::Get().Current(); }

void WriteTo(std::function<void(std::string_view)> sink, bool replay) {
  Log::Get().WriteTo(std::move(sink), replay);
}

void KeepIn(const std::filesystem::path& file) { Log::Get().KeepIn(file); }

void PassOn(std::string_view line) { Log::Get().PassOn(line); }

}  // namespace dtrun::log

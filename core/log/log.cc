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

  void KeepIn(UniqueFd folder, const std::filesystem::path& shown, mode_t mode) {
    const std::lock_guard lock(mutex_);
    folder_ = std::move(folder);
    shown_ = shown;
    mode_ = mode;
    file_.Reset();
    if (folder_ && !remembered_->last_raw(1).empty()) Open();
  }

 private:
  Log() : remembered_(std::make_unique<spdlog::sinks::ringbuffer_sink_st>(kRemembered)) {
    TakesWholeLines(*remembered_);
    time_ = std::make_unique<spdlog::pattern_formatter>("%Y-%m-%d %H:%M:%S.%e",
                                                        spdlog::pattern_time_type::local, "");
  }

  std::string Line(std::string_view room, Level level, std::string_view text) const {
    spdlog::memory_buf_t now;
    time_->format(spdlog::details::log_msg({}, spdlog::level::info, {}), now);
    std::string one(text.substr(0, kMostBytes));
    if (text.size() > one.size()) one += fmt::format("... ({} bytes more)", text.size() - one.size());
    for (char& c : one) {
      if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    }
    one = Printable(one);  // a plugin's, which a terminal would obey
    if (json_) {
      Json json{{"time", std::string(now.data(), now.size())}, {"host", host_}};
      if (rank_) json["rank"] = *rank_;
      json.update(Json{{"level", Name(level)}, {"part", room}, {"text", one}});
      return JsonLine(json) + "\n";
    }
    std::string line(now.data(), now.size());
    if (!host_.empty()) line += " " + host_;
    if (rank_) line += fmt::format(" rank {}", *rank_);
    return fmt::format("{} {} {}: {}\n", line, Name(level), room.empty() ? "dtrun" : room, one);
  }

  void Distribute(std::string_view line) {
    Show(line);
    if (folder_ && !file_) Open();
    if (file_) Keep(line);
    Put(*remembered_, line);
  }

  void Show(std::string_view line) {
    if (sink_) return sink_(line);
    WriteToStandardError(line);
  }

  void Open() {
    if (!Make()) return;
    for (const std::string& line : remembered_->last_formatted()) {
      if (file_) Keep(line);
    }
  }

  // spdlog's own file sink would follow links and wait for a pipe.
  bool Make() {
    Result<UniqueFd> file = MakeOwnFileAt(folder_.get(), shown_ / kNames[0], mode_);
    if (!file) {
      GiveUpFile(file.error().text);
      return false;
    }
    file_ = *std::move(file);
    size_ = 0;
    return true;
  }

  void Keep(std::string_view line) {
    if (size_ + line.size() > kFileBytes) {
      for (std::size_t i = std::size(kNames) - 1; i > 0; --i)
        (void)::renameat(folder_.get(), kNames[i - 1], folder_.get(), kNames[i]);
      if (!Make()) return;
    }
    size_ += line.size();
    while (!line.empty()) {
      const ssize_t written = ::write(file_.get(), line.data(), line.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        return GiveUpFile(
            Error::System(fmt::format("cannot write '{}'", (shown_ / kNames[0]).string()), errno).text);
      line.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  // The log goes on without the file.
  void GiveUpFile(const std::string& why) {
    folder_.Reset();
    file_.Reset();
    Show(Line("job", Level::kError, "the log is no longer kept in a file: " + why));
  }

  // poll reports a pipe as writable if at least PIPE_BUF bytes fit (pipe(7)), so no piece of a line blocks. A
  // line for which there is no room is dropped, or cut.
  void WriteToStandardError(std::string_view line) {
    std::string with_loss;
    if (dropped_ != 0) {
      with_loss =
          fmt::format("dtrun: {} lines of the log were dropped, as standard error was full\n", dropped_);
      with_loss += line;
      line = with_loss;
    }
    const std::uint64_t dropped_before = std::exchange(dropped_, 0);
    while (!line.empty()) {
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) {
        dropped_ = dropped_before + 1;
        return;
      }
      const ssize_t written =
          ::write(STDERR_FILENO, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
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
  UniqueFd folder_;              // of the file; none: no file is kept
  std::filesystem::path shown_;  // the folder in errors
  mode_t mode_ = 0;              // of the file
  UniqueFd file_;                // none: not created yet
  std::size_t size_ = 0;         // of the file, in bytes
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
  Log::Get().Start(options, host, rank);
}

Options Current() { return Log::Get().Current(); }

void WriteTo(std::function<void(std::string_view)> sink, bool replay) {
  Log::Get().WriteTo(std::move(sink), replay);
}

void KeepIn(UniqueFd folder, const std::filesystem::path& shown, mode_t mode) {
  Log::Get().KeepIn(std::move(folder), shown, mode);
}

void PassOn(std::string_view line) { Log::Get().PassOn(line); }

}  // namespace dtrun::log
